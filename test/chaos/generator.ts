import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { GROUP_KEYS, type SentEvent } from './record.ts';

/** The timeout after which a response is considered lost. It is shorter than the longest stop of a role. */
const ANSWER_MS = 8_000;
const AGAIN_MS = 100;
/** The interval between long events, which are either pushed with their body or read by the dispatcher. */
const LONG = { every: 16, bytes: 15_000 };
const LONGER = { every: 64, bytes: 20_000 };
const SHORT_BYTES = 300;

/**
 * Sends the events of each group key in order, i.e. each event is sent after the previous event has been acknowledged.
 */
export interface Generator {
  readonly events: readonly SentEvent[];
  /** The number of responses by status, or by error code if there was no response. */
  readonly answers: ReadonlyMap<string, number>;
  /** Adds one long event for each group key. */
  readonly burst: (keys: number) => void;
  /** Stops planning events and waits until all events have been acknowledged. */
  readonly finish: (withinMs: number) => Promise<void>;
  readonly stop: () => void;
}

/**
 * Sends `rate` events per second, evenly distributed, regardless of the responses. Events that have not been
 * acknowledged are resent with the same `webhook-id`.
 */
export function startGenerator(target: { url: string; headers: Record<string, string> }, rate: number): Generator {
  const events: SentEvent[] = [];
  const answers = new Map<string, number>();
  const startMs = performance.now();
  const plannedMs = (n: number) => startMs + (n * 1_000) / rate;
  let planned = 0;
  let open = 0;
  let isStopped = false;
  const lanes = GROUP_KEYS.map(key => ({
    key,
    agent: new Agent({ keepAlive: true, maxSockets: 1 }),
    waiting: [] as SentEvent[],
    busy: false,
  }));
  type Lane = (typeof lanes)[number];

  function post(lane: Lane, event: SentEvent): Promise<string> {
    return new Promise(resolve => {
      const sending = request(
        target.url,
        {
          method: 'POST',
          agent: lane.agent,
          headers: {
            ...target.headers,
            'content-type': 'text/plain',
            'content-length': String(event.bytes),
            'webhook-id': event.id,
            'x-sluice-group-key': event.key,
          },
          signal: AbortSignal.timeout(ANSWER_MS),
        },
        response => {
          response.resume();
          response.on('end', () => resolve(String(response.statusCode)));
          response.on('error', () => resolve('aborted'));
        },
      );
      sending.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.name));
      sending.end(Buffer.alloc(event.bytes, 'x'));
    });
  }

  async function work(lane: Lane): Promise<void> {
    lane.busy = true;
    for (let event = lane.waiting.shift(); event !== undefined; event = lane.waiting.shift()) {
      while (event.acknowledgedMs === undefined && !isStopped) {
        const status = await post(lane, event);
        answers.set(status, (answers.get(status) ?? 0) + 1);
        if (status === '202') event.acknowledgedMs = performance.now();
        else await delay(AGAIN_MS);
      }
      open--;
    }
    lane.busy = false;
  }

  function add(lane: Lane, bytes: number, atMs: number): void {
    const event = { id: `e${events.length}`, key: lane.key, bytes, plannedMs: atMs, acknowledgedMs: undefined };
    events.push(event);
    open++;
    lane.waiting.push(event);
    if (!lane.busy) void work(lane);
  }

  const timer = setInterval(() => {
    for (const nowMs = performance.now(); plannedMs(planned) <= nowMs; planned++) {
      const bytes = [LONGER, LONG].find(({ every }) => planned % every === every - 1)?.bytes ?? SHORT_BYTES;
      // This number and the number of keys are coprime, so each key has events of each length.
      add(
        lanes[(planned * 37 + Math.floor(planned / GROUP_KEYS.length)) % GROUP_KEYS.length] as Lane,
        bytes,
        plannedMs(planned),
      );
    }
  }, 2);

  function stop(): void {
    isStopped = true;
    clearInterval(timer);
    for (const { agent } of lanes) agent.destroy();
  }

  return {
    events,
    answers,
    burst(keys) {
      for (const lane of lanes.slice(0, keys)) add(lane, LONG.bytes, performance.now());
    },
    async finish(withinMs) {
      clearInterval(timer);
      const untilMs = performance.now() + withinMs;
      while (open > 0 && performance.now() < untilMs) await delay(20);
    },
    stop,
  };
}
