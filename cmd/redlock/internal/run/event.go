package run

// event names a kind of message, for programs that read --log-format json. docs/command.md has a
// table of them. The library's messages have names of their own.
type event string

const (
	eventNodesFileExposed event = "nodes_file_exposed"
	eventWaiting          event = "waiting"
	eventAcquired         event = "acquired"
	eventMaybeHeld        event = "maybe_held"
	eventCommandStarted   event = "command_started"
	eventWatchdogFailed   event = "watchdog_failed"
	eventNicenessSet      event = "niceness_set"
	eventSignalForwarded  event = "signal_forwarded"
	eventSignalForbidden  event = "signal_forbidden"
	eventCommandStopped   event = "command_stopped"
	eventSuspended        event = "suspended"
	eventResumed          event = "resumed"
	eventTerminating      event = "terminating"
	eventKilling          event = "killing"
	eventCommandEnded     event = "command_ended"
	eventLeftoversEnded   event = "leftovers_ended"
	eventReleased         event = "released"
	eventLeftTaken        event = "left_taken"
	eventNotReleased      event = "not_released"
	eventStandingBy       event = "standing_by"
	eventFailed           event = "failed"
)
