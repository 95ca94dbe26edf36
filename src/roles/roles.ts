import type { Role } from '../config/config.ts';
import type { Parts, Running } from './parts.ts';

/** Starts a role. When the promise resolves, the role is working. */
export type Start = (parts: Parts) => Running | Promise<Running>;

/**
 * Loads the module of a role. Different roles require different packages. Most packages are larger than Sluice itself.
 */
const LOAD: Readonly<Record<Role, () => Promise<Start>>> = {
  controller: async () => (await import('./controller.ts')).startController,
  facade: async () => (await import('./facade.ts')).startFacade,
  ingress: async () => (await import('./ingress.ts')).startIngress,
  dispatcher: async () => (await import('./dispatcher.ts')).startDispatcher,
};

/** Only loads the modules of these roles and returns the functions to start them. */
export async function loadRoles(roles: readonly Role[]): Promise<ReadonlyMap<Role, Start>> {
  return new Map(await Promise.all(roles.map(async role => [role, await LOAD[role]()] as const)));
}
