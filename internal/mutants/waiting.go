package main

// waiting are bugs of the queue that the simulation sees.
var waiting = []bug{
	{"release-wakes-nobody", "a release leaves those who wait to their own looks", one(release,
		"if permitted and who then", "if permitted and who and false then")},
	{"flag-not-kept", "a release that has woken somebody leaves the queue without its flag", one(release,
		"  redis.call('SET', flag, '1', 'PX', math.max(redis.call('PTTL', queue), 1000))\n", "")},
	{"woken-need-not-come", "who was woken and does not come keeps its place", one(wake,
		"    if who == me or not by or by > now and by <= now + 1000 then", "    if true then")},
	{"last-comes-first", "the highest ticket is first", one(wake,
		"ask(queue, 'ZRANGEBYSCORE', '100000000000000', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)", "ask(queue, 'ZREVRANGEBYSCORE', '+inf', '100000000000000', 'WITHSCORES', 'LIMIT', 0, 1)")},
	{"grown-key-stays", "a key that the lock grew by is not released", one(lifecycle,
		"	l.outlive(now.Add(ttl))\n	l.mu.Unlock()\n	l.grown = true\n", "	l.mu.Unlock()\n")},
}

// delaying are bugs of the queue that cost a wait some seconds: looks make up for what is
// lost, and the simulation allows for them. A test in virtual time knows what it may take.
var delaying = []mutant{
	shownBy("TestWhoGivesUpLeavesTheQueue", bug{"leaves-in-silence", "who gives up waiting stays in the queues", one(waits,
		"	w.r.ears.end(w)\n	w.leave(w.value)\n", "	w.r.ears.end(w)\n")}),
	shownBy("TestWhoGivesUpWhenWokenWakesTheNext", bug{"leaver-wakes-nobody", "who leaves a free key says nothing to the next", one(queue,
		"  if not held then\n    wake(queue, flag, '')\n  end\n", "")}),
	shownBy("TestWhoHangsHasASecond", bug{"giver-wakes-nobody", "who gives back what it got in vain says nothing to the first", one(queue,
		"  local woken, comes = wake(queue, flag, me)\n", "  local woken, comes = me, 0\n")}),
	shownBy("TestWhoIsGoneIsSkippedAtOnce", bug{"dead-stay-first", "a waiter whom nobody hears for keeps its place", one(wake,
		"    if type(heard) == 'table' or heard > 0 then", "    if true then")}),
	shownBy("TestFairKeepsNewcomersBehind", bug{"anybody-takes-it", "a free key goes to whoever asks, and not to the first", one(queue,
		"  local turn = ours or not head", "  local turn = true or not head")}),
	shownBy("TestWaitingForTheEndOfAQuarantine", bug{"loser-loses-place", "who finds no majority gives its place up with what it got", one(cleanup,
		"		cmd.kind, cmd.stance = kindStand, w.stance(cmd.value)\n", "")}),
	shownBy("TestWakesLostOnSomeNodes", bug{"try-without-place", "who is refused takes no place", one(queue,
		"if ticket > 0 and not ours then", "if false then")}),
	shownBy("TestAReleaseWakesTheFirstInTheQueue", bug{"wakes-not-counted", "a waiter does not heed what it is told", one(news,
		"	lock := w.lock\n	w.free(node)\n", "	lock := w.lock\n")}),
	shownBy("TestTheFirstTakesAKeyThatExpires", bug{"expiry-not-watched", "nobody looks whether a dead holder's key has expired", one(nexts,
		"	if at := w.expiry(need, counts); !at.IsZero() {", "	if at := w.expiry(need, counts); false && !at.IsZero() {")}),
	shownBy("TestWhatIsNext", bug{"never-looks", "who waits relies on being woken", []edit{
		{nexts, "	best := step{do: stand, at: w.look}\n", "	best := step{do: stand, at: now.Add(fullLook * 100)}\n"},
		{nexts, "	if at := w.expiry(need, counts); !at.IsZero() {", "	if at := w.expiry(need, counts); false && !at.IsZero() {"},
	}}),
	shownBy("TestWhoComesBackAtOnceTakesTurns", bug{"new-ears-unused", "who has a new subscription does not ask for the places again", one(news,
		"	s.early, s.in, s.again = s.asked, false, time.Time{}\n", "	s.again = time.Time{}\n")}),
	shownBy("TestFairKeepsNewcomersBehind", bug{"newcomers-first", "with Fair, too, a newcomer takes the key ahead of the queue", one(attempt,
		"	case r.cfg.Fair:\n		cmd.queue, cmd.stance = queueOf(name), r.newcomer(name)\n", "")}),
	shownBy("TestALockThatIsOverLetsTheLineGoOn", bug{"line-waits-for-ever", "who waits behind a lock of the same client is not told when it is lost", one(lifecycle,
		"		l.r.turns.pass(l)\n", "")}),
	shownBy("TestAPlaceGoesToTheNextGoroutine", bug{"place-dies-with-caller", "a place in the queue is not handed on within a client", one(turns,
		"	if len(l.places) == 0 {\n		over, l.wait = l.wait, nil\n	}\n", "	if i == 0 {\n		over, l.wait = l.wait, nil\n	}\n")}),
	shownBy("TestRedlocksGetALockInTheOrderInWhichTheyCame", bug{"same-ticket-for-all", "all tickets are the same", one(tickets,
		"	t.last = min(max(now+t.ahead, t.last+1, minTicket), maxTicket)\n", "	t.last = minTicket\n")}),
}

func shownBy(test string, b bug) mutant { return mutant{bug: b, test: test} }
