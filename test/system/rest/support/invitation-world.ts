import { API_VERSION } from '../../../../src/api/group-version.ts';
import { receivingWorkspaceName } from '../../../../src/core/ids/invitation-names.ts';
import type { ProblemDocument } from '../../../../src/core/problems/problem.ts';
import { applyPermissions, kubeconfigOf } from '../../../support/kubernetes/permissions.ts';
import { type MailServer, startMailServer } from '../../../support/mail/mail-server.ts';
import type { Sluice } from '../../../support/sluice.ts';
import { eventually } from '../../support/deadline.ts';
import type { Reply, RestClient } from '../../support/rest-client.ts';
import { apply, conditionOf, kubectl, read } from '../../support/world.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './facade-world.ts';

/** The response to an acceptance. */
export interface Accepted {
  readonly integrationPublicId: string;
  readonly workspacePublicId: string;
  readonly accountPublicId: string;
  readonly producerTenantPublicId: string;
  readonly status: string;
}

export interface Invitation {
  /** The `int_…` id. */
  readonly id: string;
  readonly name: string;
  readonly token: string;
}

/**
 * A producer `shop` owned by ada that invites partners by email, with a controller, a mail server, and several
 * independent facades with the permissions of their service account.
 */
export interface InvitationWorld {
  readonly world: FacadeWorld;
  readonly controller: Sluice;
  readonly facades: readonly Sluice[];
  /** The `ten_…` id of the producer. */
  readonly shop: string;
  readonly ada: RestClient;
  /** Returns the client of a person, using one of the facades. */
  readonly as: (sub: string, facade?: number) => Promise<RestClient>;
  /** Creates an additional invitation for `partner-<n>@example.com`. Returns it with the token from the email. */
  readonly invite: () => Promise<Invitation>;
  readonly inCluster: (args: readonly string[]) => Promise<string>;
  readonly specOf: (kind: string, name: string, namespace?: string) => Promise<Record<string, unknown>>;
  /** Returns the workspace that receives an integration for an account, before it has been accepted. */
  readonly makeReceiver: (integration: string, account: string) => Promise<void>;
  /** Starts an additional facade with the permissions of its service account. */
  readonly startFacade: (env: Readonly<Record<string, string>>) => Promise<Sluice>;
  readonly mail: MailServer;
  readonly stop: () => Promise<void>;
}

export const accept = (token: string, by: RestClient, accountPublicId?: string): Promise<Reply<Accepted>> =>
  by.post('/waas/invitations/accept', { token, ...(accountPublicId === undefined ? {} : { accountPublicId }) });

export const decline = (token: string, by: RestClient): Promise<Reply> =>
  by.post('/waas/invitations/decline', { token });

export const codeOf = ({ body }: Reply): string | undefined => (body as ProblemDocument | undefined)?.code;

/** Returns the token sent to an email address. */
export async function readToken(mail: MailServer, email: string): Promise<string> {
  const { value } = await eventually(
    `there is an email to ${email}`,
    async () => mail.received.find(({ to }) => to.includes(email))?.body.match(/sinv_[\w-]{43}/)?.[0],
  );
  return value;
}

/** @param options.replicas number of facades, which defaults to 3 */
export async function openInvitationWorld({
  facadeEnv = {},
  replicas = 3,
}: {
  readonly facadeEnv?: Readonly<Record<string, string>>;
  readonly replicas?: number;
} = {}): Promise<InvitationWorld> {
  const [world, mail] = await Promise.all([openFacadeWorld(), startMailServer()]);
  const { cluster } = world.installation;
  await applyPermissions(cluster);
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-facade');
  const controller = await world.start({
    role: 'controller',
    env: {
      SLUICE_LOG_LEVEL: 'debug',
      SLUICE_SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
      SLUICE_SMTP_FROM: 'sluice@example.org',
    },
  });
  const startFacade = (env: Readonly<Record<string, string>> = {}) =>
    world.start({ role: 'facade', kubeconfig, env: { SLUICE_LOG_LEVEL: 'debug', ...facadeEnv, ...env } });
  const facades = await Promise.all(Array.from({ length: replicas }, () => startFacade()));
  const { shop = '' } = await makeTenants(world, { shop: 'ada', other: 'eve' });
  const as = (sub: string, n = 0) => world.as(facades[n] as Sluice, sub);
  const ada = await as('ada');
  const inCluster = (args: readonly string[]) => kubectl(cluster, args);
  let invitations = 0;
  return {
    world,
    controller,
    facades,
    shop,
    ada,
    as,
    invite: async () => {
      const email = `partner-${++invitations}@example.com`;
      const { body } = await ada.post<{ publicId: string }>('/waas/integrations', {
        producerTenantPublicId: shop,
        email,
      });
      const token = await readToken(mail, email);
      const entry = await ada.get<{ name: string }>(`/waas/producer/${shop}/integrations/${body.publicId}`);
      return { id: body.publicId, name: entry.body.name, token };
    },
    inCluster,
    specOf: async (kind, name, namespace) => {
      const object = await read<{ readonly spec: Readonly<Record<string, unknown>> }>(cluster, kind, name, namespace);
      if (object === undefined) throw new Error(`there is no ${kind} ${name}`);
      return object.spec;
    },
    makeReceiver: async (integration, account) => {
      const name = receivingWorkspaceName('shop', integration, account);
      await apply(cluster, [{ apiVersion: API_VERSION, kind: 'Workspace', metadata: { name }, spec: { account } }]);
      const isReady = async () => (await conditionOf(cluster, `workspace/${name}`, undefined)).startsWith('True/');
      await eventually(`the workspace ${name} is ready`, isReady, { withinMs: 120_000 });
    },
    startFacade,
    mail,
    stop: async () => {
      await world.stop();
      await mail.close();
    },
  };
}
