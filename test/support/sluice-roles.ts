import { type Sluice, type SluiceOptions, type SluiceRole, startSluice } from './sluice.ts';

/**
 * Starts each role in a separate process. Returns them like a single process: the URLs belong to the corresponding
 * roles, and metrics are added up. The facade is started if the environment has an issuer.
 */
export async function startSluiceRoles(
  options: Omit<SluiceOptions, 'role' | 'redisUrl'> & { readonly redisUrlOf: (role: SluiceRole) => string },
): Promise<Sluice> {
  const { redisUrlOf, ...rest } = options;
  const start = (role: SluiceRole) => startSluice({ ...rest, role, redisUrl: redisUrlOf(role) });
  const hasFacade = rest.env?.SLUICE_OIDC_ISSUERS !== undefined;
  const [controller, ingress, dispatcher, facade] = (await Promise.all(
    (['controller', 'ingress', 'dispatcher', ...(hasFacade ? ['facade' as const] : [])] as const).map(start),
  )) as [Sluice, Sluice, Sluice, Sluice | undefined];
  const all = [controller, ingress, dispatcher, ...(facade === undefined ? [] : [facade])];
  return {
    get pid() {
      return controller.pid;
    },
    ingressUrl: ingress.ingressUrl,
    facadeUrl: (facade ?? controller).facadeUrl,
    opsUrl: controller.opsUrl,
    log: controller.log,
    running: () => all.every(each => each.running()),
    readyz: controller.readyz,
    logLines: async () => (await Promise.all(all.map(each => each.logLines()))).flat(),
    metric: async (name, labels) =>
      (await Promise.all(all.map(each => each.metric(name, labels)))).reduce((sum, each) => sum + each, 0),
    kill: async signal => void (await Promise.all(all.map(each => each.kill(signal)))),
    stop: async () => (await Promise.all(all.map(each => each.stop())))[0] as Awaited<ReturnType<Sluice['stop']>>,
    restart: async () => void (await Promise.all(all.map(each => each.restart()))),
  };
}
