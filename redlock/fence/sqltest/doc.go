// Package sqltest tries package fence on real databases: SQLite, PostgreSQL and
// MariaDB. It is a module of its own, so that their drivers stay out of the library's.
//
// The servers are started by the tests, from the programs of an installed
// PostgreSQL and MariaDB, each in a temporary directory and on a socket in there; a
// system's own servers are left alone. Where the programs are missing the tests fail
// and say what to install.
package sqltest
