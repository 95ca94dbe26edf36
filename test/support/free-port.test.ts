import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from './free-port.ts';

/** Two processes that choose so many ports at random would have some of them in common. */
const COUNT = 400;

const CHOOSE = `
import { freePorts } from ${JSON.stringify(new URL('free-port.ts', import.meta.url))};
console.log(JSON.stringify(await freePorts(${COUNT})));
setInterval(() => {}, 60_000);
`;

test.runIf(process.platform === 'linux')('does not choose a port that another process has chosen', async () => {
  const other = spawn(process.execPath, ['--input-type=module', '-e', CHOOSE], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void other.kill());
  const [line] = (await once(createInterface({ input: other.stdout }), 'line')) as [string];
  const theirs = new Set(JSON.parse(line) as number[]);
  expect(theirs.size).toBe(COUNT);
  expect((await freePorts(COUNT)).filter(port => theirs.has(port))).toEqual([]);
});
