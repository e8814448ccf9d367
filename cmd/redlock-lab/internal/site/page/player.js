// The virtual clock of the page: where the playhead is, how fast it goes, and what stops it.

import { ms } from './address.js';

// speeds are what the slider offers, in virtual time for a second of real time.
export const speeds = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];

export class Player {
  // tell(name): playing, paused, violation, over.
  constructor(lab, tell) {
    this.lab = lab;
    this.tell = tell;
    this.at = 0; // nanoseconds
    this.speed = 1;
    this.isPlaying = false;
    this.realSpeed = 1; // what the worker manages
    this.shownViolation = false; // the first violation stops a run once
    this.last = 0;
    this.stepping = false;
  }

  get history() {
    return this.lab.history;
  }

  play() {
    if (this.isPlaying) return;
    if (this.lab.isOver && this.at >= this.history.generated) this.at = 0;
    this.isPlaying = true;
    this.realSpeed = this.speed;
    this.tell('playing');
  }

  pause() {
    this.stepping = false;
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.tell('paused');
  }

  // reset stands at the start of a run.
  reset() {
    this.at = 0;
    this.isPlaying = false;
    this.stepping = false;
    this.shownViolation = false;
  }

  // step pauses at the next event. If it has not been made yet, the worker is asked for more.
  step() {
    this.pause();
    this.stepping = true;
  }

  // seek moves the playhead within what has been made.
  seek(at) {
    this.at = Math.min(Math.max(0, at), this.history.generated);
    this.stepping = false;
    this.noticeViolation();
    this.tell('sought');
  }

  // frame moves the playhead by what has passed since the last frame.
  frame(now) {
    const passed = Math.min(now - this.last, 100); // a sleeping tab does not jump
    this.last = now;
    if (this.lab.coming) return;
    if (this.stepping) this.findNext();
    if (this.isPlaying) this.advance(passed);
    if (this.isPlaying) this.lab.need(this.at, this.speed);
  }

  advance(passed) {
    const want = this.at + passed * ms * this.speed;
    let next = Math.min(want, this.history.generated);
    const violation = this.shownViolation ? null : this.history.violations[0];
    const stops = violation && violation.at <= next; // it may have been found later than it was
    if (stops) next = violation.at;
    if (passed > 0) {
      const real = Math.max(0, next - this.at) / (passed * ms);
      this.realSpeed += (real - this.realSpeed) * Math.min(1, passed / 1000);
    }
    this.at = stops ? next : Math.max(this.at, next);
    if (stops) {
      this.shownViolation = true;
      this.pause();
      this.tell('violation');
    } else if (this.lab.isOver && this.at >= this.history.generated) {
      this.pause();
      this.tell('over');
    }
  }

  findNext() {
    const next = this.history.nextEvent(this.at);
    if (next !== null && next <= this.history.generated) {
      this.at = next;
      this.stepping = false;
      this.noticeViolation();
      this.tell('sought');
    } else if (this.lab.isOver) {
      this.stepping = false;
    } else {
      this.lab.need(this.history.generated, 1);
    }
  }

  noticeViolation() {
    const violation = this.history.violations[0];
    if (violation && violation.at <= this.at && !this.shownViolation) {
      this.shownViolation = true;
      this.tell('violation');
    }
  }
}
