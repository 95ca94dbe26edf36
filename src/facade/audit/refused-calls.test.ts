import { expect, test } from 'vitest';
import { createRefusedCalls } from './refused-calls.ts';

function start() {
  let nowMs = 0;
  let timer: (() => void) | undefined;
  const lines: object[] = [];
  const clock = {
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    setTimer: (run: () => void) => {
      timer = run;
      return () => {
        timer = undefined;
      };
    },
  };
  const calls = createRefusedCalls(line => lines.push(line), clock);
  const note = (status: number, reason: string, network?: string) =>
    calls.note({ status, reason, network }, () => ({ status, reason }));
  return {
    note,
    lines,
    pass: (ms: number) => {
      nowMs += ms;
    },
    fire: () => timer?.(),
  };
}

test('a flood causes a few lines and a summary with all that is missing', () => {
  const { note, lines, fire } = start();
  for (let n = 0; n < 10_000; n++) note(401, n % 4 === 0 ? 'missing' : 'signature', n % 2 ? '192.0.2.0/24' : undefined);
  expect(lines).toHaveLength(20);
  fire();
  expect(lines).toHaveLength(21);
  expect(lines[20]).toEqual({
    msg: 'refused calls',
    status: 401,
    count: 9_980,
    reasons: { missing: 2_495, signature: 7_485 },
    networks: { '192.0.2.0/24': 4_990 },
    seconds: 10,
  });
  fire();
  expect(lines).toHaveLength(21);
});

test('lines are refilled over time, and a flood of 401 does not affect 403', () => {
  const { note, lines, pass } = start();
  for (let n = 0; n < 100; n++) note(401, 'missing');
  note(403, 'forbidden');
  expect(lines.at(-1)).toEqual({ status: 403, reason: 'forbidden' });
  pass(1_000);
  for (let n = 0; n < 100; n++) note(401, 'missing');
  expect(lines).toHaveLength(20 + 1 + 5);
});

test('a summary lists the networks with the most calls, however many there are', () => {
  const { note, lines, fire } = start();
  for (let n = 0; n < 5_000; n++) note(401, 'missing', `10.${n >> 8}.${n & 255}.0/24`);
  for (let n = 0; n < 50; n++) note(401, 'missing', '10.0.30.0/24');
  fire();
  const { networks } = lines.at(-1) as { readonly networks: object };
  expect(Object.keys(networks)).toHaveLength(5);
  expect(Object.entries(networks)[0]).toEqual(['10.0.30.0/24', 51]);
});
