import { flushCompileCache } from 'node:module';
import { totalmem } from 'node:os';
import { execArgv, execPath, execve } from 'node:process';
import { COMMANDS } from './commands/commands.ts';
import { VERSION } from './config/version.ts';
import { missingNodeFlags } from './node-flags.ts';
import { listenToSignals } from './shutdown.ts';
import { textToPrint } from './usage.ts';

// Entry point, also in containers without a shell. Node flags of roles are set by replacing the program within the same
// process (execve), which keeps the process id, so signals still reach it.
const argv = process.argv.slice(2);
const text = textToPrint(argv, VERSION);
if (text !== undefined) {
  process.stdout.write(text);
} else if (Object.hasOwn(COMMANDS, argv[0] ?? '')) {
  await (await import('./commands/run.ts')).runCommand(argv, process.env);
} else {
  const flags = missingNodeFlags({
    word: argv[0],
    given: [...execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)],
    limitBytes: process.constrainedMemory(),
    machineBytes: totalmem(),
  });
  if (flags.length > 0) execve?.(execPath, [execPath, ...execArgv, ...flags, import.meta.filename, ...argv]);
  listenToSignals();
  await import('./main.ts');
  // Writes the lines that Node buffers in `bin/sluice`, so that they are not lost if the process is killed.
  flushCompileCache();
}
