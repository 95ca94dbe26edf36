import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from './temporary-folder.ts';

const LAUNCHER = join(import.meta.dirname, 'foreground.py');

/** Runs make in a terminal, presses Ctrl-C after the word `ready`, and prints the exit code of make. */
const TERMINAL = `
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execvp('make', ['make', '--file', sys.argv[1]])
output = b''
while True:
    try:
        part = os.read(terminal, 1000)
    except OSError:
        break
    if not part:
        break
    if b'ready' not in output and b'ready' in output + part:
        os.write(terminal, b'\\x03')
    output += part
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

const COMMAND = `node -e "process.on('SIGINT', () => process.exit(0)); console.log('ready'); setTimeout(() => {}, 20000)"`;

test('Ctrl-C in a terminal stops the command, and make ends with its exit code', { timeout: 30_000 }, async () => {
  const folder = await temporaryFolder('foreground');
  onTestFinished(() => folder.remove());
  const makefile = join(folder.path, 'Makefile');
  await writeFile(makefile, `all:\n\t@exec python3 '${LAUNCHER}' ${COMMAND}\n`);
  const { stdout } = await promisify(execFile)('python3', ['-c', TERMINAL, makefile]);
  expect(stdout.trim()).toBe('0');
});
