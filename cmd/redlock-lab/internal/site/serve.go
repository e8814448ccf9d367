package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/lab/exact"
	"github.com/quorumlock/redlock/internal/plain"
)

// usualPort is the default of --port. Links to a history are to this port.
const usualPort = 8317

// Link returns the address of a history on the page, while serve has its usual port. query is what comes
// after # in the address.
func Link(query string) string { return fmt.Sprintf("http://127.0.0.1:%d/#%s", usualPort, query) }

// compiler returns the simulation as a WebAssembly module.
type compiler func(context.Context) ([]byte, error)

// Serve returns the subcommand serve.
func Serve() *cobra.Command { return newServe(exact.Module) }

func newServe(module compiler) *cobra.Command {
	var port int
	var open bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the lab as a page for the browser",
		Long: `serve shows masters, clients and their locks in a browser, on a page where they
can be killed, cut off, paused and made to forget. The page runs this library
itself, compiled to WebAssembly, in virtual time. The whole history is in the
page's address: a link to it shows the same history on another machine.

The Go command compiles the simulation from its source, which takes a minute or
two the first time. The page is there at once, and waits for it.

The server listens on 127.0.0.1 alone and ends at Ctrl-C. The exit status is 0
then, 1 if the port cannot be had, and 64 if the command line is wrong.`,
		Example: `  redlock-lab serve
  redlock-lab serve --open
  redlock-lab serve --port 0`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return cli.Usagef("--port is %d, want 0 to 65535", port)
			}
			return serve(cmd, port, open, module)
		},
	}
	cmd.Flags().IntVar(&port, "port", usualPort, "listen on this `port` of 127.0.0.1; 0 takes any\nfree one")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return cmd
}

// serve serves the page until the command's context ends.
func serve(cmd *cobra.Command, port int, open bool, module compiler) error {
	page, err := pageFiles()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d is taken: choose another with --port, or any free one with --port 0", port)
	case err != nil:
		return fmt.Errorf("cannot listen on port %d: choose another with --port: %w", port, err)
	}
	address := fmt.Sprintf("http://%s/", listener.Addr())
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "The lab is at %s and ends at Ctrl-C.\n", address); err != nil {
		return errors.Join(err, listener.Close())
	}

	ctx, cancel := context.WithCancel(cmd.Context())
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	loading := load(ctx, module)
	server := &http.Server{Handler: &handler{page, loading}, ReadHeaderTimeout: 10 * time.Second}
	background.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	background.Go(func() {
		<-loading.done
		if loading.err != nil && ctx.Err() == nil {
			cmd.PrintErrf("the page has no simulation: %s\n", plain.Line(loading.err))
		}
	})
	if open {
		if err := openBrowser(address); err != nil {
			cmd.PrintErrf("no browser opened: %s\n", plain.Line(err))
		}
	}
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
