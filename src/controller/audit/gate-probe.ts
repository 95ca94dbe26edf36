import type { ControlAudit, Probe } from '../../record/control-audit.ts';

/** The maximum number of names in each probe. */
const PROBE_NAMES = 500;

/** Called with an integration's (`int_…`) group key that should be in Redis but isn't. */
type OnMissing = (integration: string, groupKey: string) => void;

/** Creates a probe to check whether a tenant's expected open group keys exist in Redis, a slice at a time. */
export function createGateProbe(store: Pick<ControlAudit, 'probe'>, onMissing: OnMissing) {
  /** The number of group keys in Redis for each integration (`int_…`). */
  const sizes = new Map<string, number>();
  /** The number of expected group keys that were found in Redis. */
  const present = new Map<string, number>();
  let batch: Probe[] = [];
  let names = 0;

  async function flush(): Promise<void> {
    const probes = batch;
    batch = [];
    names = 0;
    for (const [i, { size, missing }] of (await store.probe(probes)).entries()) {
      const { integration, groupKeys } = probes[i] as Probe;
      sizes.set(integration, size);
      present.set(integration, (present.get(integration) ?? 0) + groupKeys.length - missing.length);
      for (const each of missing) onMissing(integration, each);
    }
  }

  async function expectSlice(integration: string, groupKeys: readonly string[]): Promise<void> {
    batch.push({ integration, groupKeys });
    names += 1 + groupKeys.length;
    if (names >= PROBE_NAMES) await flush();
  }

  return {
    /**
     * Sets the expected group keys of an integration. Must be called exactly once for each integration, including all
     * of its group keys.
     */
    async expect(integration: string, groupKeys: Iterable<string>): Promise<void> {
      let slice: string[] = [];
      let isAsked = false;
      for (const groupKey of groupKeys) {
        slice.push(groupKey);
        if (slice.length < PROBE_NAMES) continue;
        await expectSlice(integration, slice);
        slice = [];
        isAsked = true;
      }
      if (slice.length > 0 || !isAsked) await expectSlice(integration, slice);
    },
    /** Finishes the probe. Returns all integrations which have more group keys in Redis than expected. */
    async finish(): Promise<string[]> {
      await flush();
      return [...sizes].flatMap(([integration, size]) => (size > (present.get(integration) ?? 0) ? [integration] : []));
    },
  };
}
