import { writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { createClient, createTally } from './client.ts';
import { floodConnections } from './connections.ts';
import type { Answers, Attack } from './messages.ts';

/**
 * The process of the hostile tenant. Floods a server as described by each message, and returns the number of responses.
 */

// A hostile tenant uses the CPU of its own machines. If the kernel groups processes by session, a priority only applies
// within its session, and each role has its own, so the session needs a low priority as well.
setPriority(constants.priority.PRIORITY_LOW);
try {
  writeFileSync('/proc/self/autogroup', '19');
} catch {
  // This kernel does not group processes.
}

async function floodRequests({ url, requests, connections, forMs }: Attack): Promise<Answers> {
  const client = createClient(url, connections);
  const tally = createTally();
  let next = 0;
  let isOver = false;
  const work = async () => {
    while (!isOver) {
      const sent = requests[next++ % requests.length];
      if (sent === undefined) return;
      const answer = await client.send(sent);
      // Requests still waiting at the end of the flood are aborted and ignored.
      if (!isOver || answer !== 'none') tally.add(answer);
    }
  };
  const workers = Array.from({ length: connections }, work);
  await new Promise(resolve => setTimeout(resolve, forMs));
  isOver = true;
  client.close();
  await Promise.all(workers);
  return tally.answers;
}

process.on('message', (attack: Attack) => {
  const flood = attack.manner === 'requests' ? floodRequests : floodConnections;
  void flood(attack).then(answers => process.send?.(answers));
});
process.on('disconnect', () => process.exit());
