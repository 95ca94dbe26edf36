/** A snapshot of an etcd: value and version of each key, in the format of etcd's JSON (base64, decimal). */
export type Baseline = ReadonlyMap<string, { readonly value: string; readonly version: string }>;

interface Entry {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
}

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');
const toText = (key: string) => Buffer.from(key, 'base64').toString('utf8');

/** The range of all Kubernetes keys. `0` follows `/` in ASCII. */
const ALL = { key: base64('/registry/'), range_end: base64('/registry0') };

/** The keys of the running API server, which are not objects stored using it. */
const OF_THE_SERVER = /^\/registry\/(masterleases|leases\/kube-system|services\/endpoints|endpointslices|ranges)\//;

/** Objects that the running API server restores itself, and whose status it writes. */
const RESTORED_BY_SERVER = /^\/registry\/(flowschemas|prioritylevelconfigurations)\//;

/** etcd refuses transactions with more operations by default. */
const MOST_OPERATIONS = 128;

async function call<T>(url: string, path: string, body: object): Promise<T> {
  const response = await fetch(`${url}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

async function read(url: string, keysOnly: boolean): Promise<Entry[]> {
  const { kvs = [] } = await call<{ kvs?: Entry[] }>(url, 'range', { ...ALL, keys_only: keysOnly });
  return kvs.filter(({ key }) => !OF_THE_SERVER.test(toText(key)));
}

/** Reads a snapshot of the etcd at `url`. */
export async function readBaseline(url: string): Promise<Baseline> {
  const entries = await read(url, false);
  return new Map(entries.map(({ key, value = '', mod_revision: version }) => [key, { value, version }]));
}

/**
 * Resets the etcd at `url` to the baseline, using transactions. For an API server using this etcd, these are ordinary
 * changes: namespaces and objects disappear immediately, without finalizers and without the controllers that are
 * missing from a test cluster.
 *
 * @returns the number of removed or restored keys
 */
export async function restoreBaseline(url: string, baseline: Baseline): Promise<number> {
  const present = new Map((await read(url, true)).map(({ key, mod_revision: version }) => [key, version]));
  const removals = [...present.keys()]
    .filter(key => !baseline.has(key))
    .map(key => ({ request_delete_range: { key } }));
  const repairs = [...baseline]
    .filter(([key, { version }]) => present.get(key) !== version && !RESTORED_BY_SERVER.test(toText(key)))
    .map(([key, { value }]) => ({ request_put: { key, value } }));
  const operations = [...removals, ...repairs];
  for (let from = 0; from < operations.length; from += MOST_OPERATIONS) {
    await call(url, 'txn', { success: operations.slice(from, from + MOST_OPERATIONS) });
  }
  return operations.length;
}
