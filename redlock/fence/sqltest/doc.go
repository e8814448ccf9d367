// Package sqltest tests package fence on real databases: SQLite, PostgreSQL and MariaDB. It is
// a module of its own, so that their drivers stay out of the library's module.
//
// The tests start their own servers from the programs of an installed PostgreSQL and MariaDB.
// Each server has a temporary directory with its socket. The system's own servers are not
// touched. If a program is missing, the tests fail and say what to install.
package sqltest
