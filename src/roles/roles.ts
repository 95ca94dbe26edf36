import type { Role } from '../config/config.ts';
import { startController } from './controller.ts';
import { startDispatcher } from './dispatcher.ts';
import { startFacade } from './facade.ts';
import { startIngress } from './ingress.ts';
import type { Parts, Running } from './parts.ts';
import { startRouter } from './router.ts';

/** Starts a role, which is working once the promise resolves. */
export const START: Record<Role, (parts: Parts) => Running | Promise<Running>> = {
  controller: startController,
  facade: startFacade,
  ingress: startIngress,
  router: startRouter,
  dispatcher: startDispatcher,
};
