import { readFile } from 'node:fs/promises';
import type { Node } from '../support/node-cluster/node.ts';
import { readTraces } from './traces.ts';

/** Sends a signal to all processes of a node whose command line contains these words. @throws if there are none */
export async function signalProcesses(node: Node, words: readonly string[], signal: NodeJS.Signals): Promise<void> {
  const { processes } = await readTraces(node.folder);
  const found: number[] = [];
  for (const pid of processes) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const args = command.split('\0');
    if (words.every(word => args.some(arg => arg.endsWith(word)))) found.push(pid);
  }
  if (found.length === 0) throw new Error(`no process of the node matches ${words.join(' ')}`);
  for (const pid of found) process.kill(pid, signal);
}
