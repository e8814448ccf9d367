package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/quorumlock/redlock/bench/result"
)

// compared are the modules whose versions the page shows.
var compared = []string{
	"github.com/go-redsync/redsync/v4",
	"github.com/bsm/redislock",
	"github.com/redis/rueidis",
	"github.com/redis/go-redis/v9",
}

// machine describes the machine, without anything that identifies it. Values that the system
// does not provide stay empty.
func machine(redisVersion string) result.Machine {
	m := result.Machine{
		CPU:       field("/proc/cpuinfo", "model name"),
		Cores:     runtime.GOMAXPROCS(0),
		MemoryGiB: memoryGiB(),
		OS:        runtime.GOOS,
		Go:        strings.TrimPrefix(runtime.Version(), "go"),
		Redis:     redisVersion,
		Modules:   make(map[string]string),
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = version(string(kernel))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			for _, path := range compared {
				if dep.Path == path {
					m.Modules[path] = dep.Version
				}
			}
		}
	}
	return m
}

// version returns the number at the beginning of a kernel's release. The rest says who built
// it.
func version(release string) string {
	end := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		return release
	}
	return release[:end]
}

func memoryGiB() float64 {
	kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	n, err := strconv.ParseFloat(kib, 64)
	if err != nil {
		return 0
	}
	return n / (1 << 20)
}

// field returns the value of the first line "name : value" in a file.
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
