import type { ControlAudit, Probe } from '../../redis/control-audit.ts';
import type { Place } from './gate-differences.ts';

/** Maximum number of names per probe. */
const PROBE_NAMES = 500;

/** Called with an integration's (`int_…`) group key that should be in a place in Redis but isn't. */
type OnMissing = (what: Place, integration: string, groupKey: string) => void;

/** Creates a probe to check whether a tenant's expected open group keys exist in Redis. The check is done in parts. */
export function createGateProbe(store: Pick<ControlAudit, 'probe'>, tenant: string, onMissing: OnMissing) {
  /** Number of group keys in Redis per integration (`int_…`) or tenant (`ten_…`). */
  const sizes = new Map<string, number>();
  /** How many of the expected group keys exist in Redis. */
  const present = new Map<string, number>();
  let batch: Probe[] = [];
  let names = 0;

  async function flush(): Promise<void> {
    const probes = batch;
    batch = [];
    names = 0;
    for (const [i, { size, missing }] of (await store.probe(probes)).entries()) {
      const probe = probes[i] as Probe;
      const place = 'groupKeys' in probe ? probe.integration : tenant;
      const expected = 'groupKeys' in probe ? probe.groupKeys : probe.gates;
      sizes.set(place, size);
      present.set(place, (present.get(place) ?? 0) + expected.length - missing.length);
      for (const each of missing) {
        if ('groupKeys' in probe) onMissing('activation', probe.integration, each);
        else onMissing('gate', ...parseGate(each));
      }
    }
  }

  async function expectPart(integration: string, groupKeys: readonly string[]): Promise<void> {
    batch.push({ integration, groupKeys });
    if (groupKeys.length > 0) batch.push({ tenant, gates: groupKeys.map(each => `${each}\0${integration}`) });
    names += 1 + groupKeys.length;
    if (names >= PROBE_NAMES) await flush();
  }

  return {
    /**
     * Sets the expected group keys of an integration. Must be called once per integration, with all of its group keys.
     */
    async expect(integration: string, groupKeys: Iterable<string>): Promise<void> {
      let part: string[] = [];
      let isAsked = false;
      for (const groupKey of groupKeys) {
        part.push(groupKey);
        if (part.length < PROBE_NAMES) continue;
        await expectPart(integration, part);
        part = [];
        isAsked = true;
      }
      if (part.length > 0 || !isAsked) await expectPart(integration, part);
    },
    /**
     * Finishes the probe and returns the integrations that have more group keys in Redis than expected. If the same
     * applies to the tenant's index, the tenant will be included too.
     */
    async finish(): Promise<string[]> {
      batch.push({ tenant, gates: [] });
      await flush();
      return [...sizes].flatMap(([place, size]) => (size > (present.get(place) ?? 0) ? [place] : []));
    },
  };
}

/** Parses a gate of the form `group key\0integration`. */
export function parseGate(gate: string): [integration: string, groupKey: string] {
  const end = gate.lastIndexOf('\0');
  return [gate.slice(end + 1), gate.slice(0, end)];
}
