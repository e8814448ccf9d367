package labpage

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browsers are the names of the programs that these tests can drive.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

var errNoBrowser = errors.New("there is no chromium")

// browse starts a browser, once. It has a profile of its own.
var browse = sync.OnceValues(func() (context.Context, error) {
	path := ""
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errNoBrowser
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(folder, "profile")),
		chromedp.Flag("hide-scrollbars", false))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which does not work for root
	}
	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, closeBrowser := chromedp.NewContext(allocator)
	stopBrowser = func() {
		closeBrowser()
		closeAllocator()
	}
	return browser, chromedp.Do(browser)
})

var stopBrowser = func() {}

// inBrowser skips a test where there is no browser, unless the tests are a change's checks.
func inBrowser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what needs a browser")
	}
	browser, err := browse()
	if errors.Is(err, errNoBrowser) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return browser
}

func TestMain(m *testing.M) { os.Exit(testAll(m)) }

func testAll(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "labpage"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	defer func() { stopBrowser() }()
	status := m.Run()
	if started != nil {
		if err := started.stop(); err != nil {
			println(err.Error())
			return 1
		}
	}
	return status
}
