import type { Role } from '../config/config.ts';
import type { Parts, Running } from './parts.ts';

/** Starts a role, which is working once the promise resolves. */
export type Start = (parts: Parts) => Running | Promise<Running>;

/** Loads a role's module. Roles differ in the packages they need, most of which are larger than Sluice. */
const LOAD: Readonly<Record<Role, () => Promise<Start>>> = {
  controller: async () => (await import('./controller.ts')).startController,
  facade: async () => (await import('./facade.ts')).startFacade,
  ingress: async () => (await import('./ingress.ts')).startIngress,
  dispatcher: async () => (await import('./dispatcher.ts')).startDispatcher,
};

/** Loads the modules of these roles only, and returns the functions that start them. */
export async function loadRoles(roles: readonly Role[]): Promise<ReadonlyMap<Role, Start>> {
  return new Map(await Promise.all(roles.map(async role => [role, await LOAD[role]()] as const)));
}
