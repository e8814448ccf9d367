// What tests use: window.lab.

import { ms } from './address.js';
import { fingerprint } from './fingerprint.js';

export function install(page, ready) {
  const { player, lab } = page;
  window.lab = {
    ready,
    time: () => player.at / ms,
    play: () => player.play(),
    pause: () => player.pause(),
    act: (word) => page.perform(word),
    violations: () => lab.history.violationsUpTo(player.at),
    fragment: () => lab.fragment(player.isPlaying ? null : player.at),
    fingerprint: async () => (lab.history.over && player.at >= lab.history.generated
      ? lab.history.over.fingerprint : fingerprint(lab.history, player.at)),

    // seek has the run made up to a time, and stands there.
    async seek(time) {
      player.pause();
      await until(() => {
        lab.need(time * ms - 1, 0);
        return !lab.coming && (lab.history.generated >= time * ms || lab.isOver);
      });
      player.seek(time * ms);
    },

    // frames measures the frames of some seconds: how many a second, and the longest in milliseconds.
    frames: (seconds) => new Promise((resolve) => {
      let first = null;
      let last = null;
      let count = 0;
      let worst = 0;
      const look = (now) => {
        if (first === null) first = now;
        else {
          count++;
          worst = Math.max(worst, now - last);
        }
        last = now;
        if (now - first < seconds * 1000) requestAnimationFrame(look);
        else resolve({ fps: (count * 1000) / (now - first), worst });
      };
      requestAnimationFrame(look);
    }),

    // runSim runs a seed of the fault lab and returns its last line.
    async runSim(fragment) {
      await page.open(fragment);
      await until(() => lab.isOver);
      player.seek(lab.history.generated);
      return lab.history.over;
    },
  };
}

function until(condition) {
  return new Promise((resolve) => {
    const look = () => (condition() ? resolve() : requestAnimationFrame(look));
    look();
  });
}
