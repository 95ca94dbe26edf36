import { expect, test } from 'vitest';
import { createLogger } from '../telemetry/log.ts';
import { createLeading, type LeadingDeps } from './leading.ts';

/** Leading of which only the beginning is looked at: it may not come further. */
function begin(read: () => void) {
  const term = new AbortController();
  const claimed: number[] = [];
  const leading = createLeading({
    client: {
      get: async () => {
        read();
        return { metadata: { uid: 'cluster' } };
      },
    },
    control: {
      lead: async (_uid: string, transitions: number) => {
        claimed.push(transitions);
        throw new Error('claimed');
      },
    },
    nowMs: () => 0,
    log: createLogger({ level: 'silent' }),
  } as unknown as LeadingDeps);
  return { term, claimed, leading };
}

test('a term that has ended while it began claims no epoch: it would fence its successor', async () => {
  const { term, claimed, leading } = begin(() => term.abort());
  await expect(leading.begin({ transitions: 7, signal: term.signal })).rejects.toThrow('aborted');
  expect(claimed).toEqual([]);
  expect(() => leading.fence()).toThrow('not leading');
});

test('one that goes on claims it', async () => {
  const { term, claimed, leading } = begin(() => {});
  await expect(leading.begin({ transitions: 7, signal: term.signal })).rejects.toThrow('claimed');
  expect(claimed).toEqual([7]);
});

/** Leading over three tenants, of which those named cannot be brought into force. */
function beginOver(...broken: string[]) {
  const term = new AbortController();
  const story: string[] = [];
  const tenants = ['ada', 'bob', 'eve'];
  const leading = createLeading({
    client: { get: async () => ({ metadata: { uid: 'cluster' } }) },
    control: {
      lead: async () => ({ epoch: 3 }),
      readCluster: async () => ({ ready: true }),
      markClusterReady: async (fence: number) => void story.push(`whole ${fence}`),
    },
    world: { Workspace: { store: new Map() } },
    tenants: {
      names: () => tenants,
      forget: () => {},
      sync: async (name: string) => {
        if (broken.includes(name)) throw new Error(`${name} is broken`);
        story.push(`sync ${name}`);
      },
    },
    enqueueTenant: (name: string) => void story.push(`again ${name}`),
    nowMs: () => 0,
    clock: { setTimer: () => () => {} },
    log: createLogger({ level: 'silent' }),
  } as unknown as LeadingDeps);
  return { story, begin: () => leading.begin({ transitions: 1, signal: term.signal }), end: () => term.abort() };
}

test('a tenant that cannot be brought into force holds up no other, and is tried again', async () => {
  const { story, begin, end } = beginOver('bob');
  await begin();
  expect(story).toEqual(['sync ada', 'sync eve', 'whole 3', 'again bob']);
  end();
});

test('where no tenant can be, the term does not begin', async () => {
  const { story, begin } = beginOver('ada', 'bob', 'eve');
  await expect(begin()).rejects.toThrow('ada is broken');
  expect(story).toEqual([]);
});
