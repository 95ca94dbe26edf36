import * as fc from 'fast-check';
import { changeAccount } from './accounts.ts';
import { activate, deleteActivation, revoke } from './activations.ts';
import { block, unblock } from './blocks.ts';
import type { ModelCommand } from './command.ts';
import { resync, takeOver } from './controllers.ts';
import { ask, dispatcherDies, endAttempt, publish, serve, wait, work } from './events.ts';
import { acknowledge, skip } from './inboxes.ts';
import { deleteIntegration, endIntegration, grant, invite } from './integrations.ts';
import { loseIntegration, loseStream, loseTenant } from './losses.ts';
import { applyPackage, archivePackage, deletePackage } from './packages.ts';
import { replay, sweep } from './replays.ts';
import { applyStream, deleteStream } from './streams.ts';
import { enable, subscribe, suspend, unsubscribe } from './subscriptions.ts';
import { deleteWorkspace, makeWorkspace, pause, resume } from './workspaces.ts';

/** The possible operations, and their relative frequency. */
const WEIGHTED: readonly (readonly [number, fc.Arbitrary<ModelCommand>])[] = [
  [16, publish],
  [18, work],
  [4, serve],
  [9, endAttempt],
  [2, ask],
  [2, skip],
  [2, acknowledge],
  [7, replay],
  [2, sweep],
  [1, dispatcherDies],
  [1, wait],
  [4, activate],
  [3, revoke],
  [1, deleteActivation],
  [4, block],
  [5, unblock],
  [4, applyPackage],
  [1, archivePackage],
  [1, deletePackage],
  [3, applyStream],
  [1, deleteStream],
  [1, invite],
  [3, grant],
  [1, endIntegration],
  [1, deleteIntegration],
  [5, subscribe],
  [3, suspend],
  [4, enable],
  [2, unsubscribe],
  [1, takeOver],
  [1, resync],
  [4, changeAccount],
  [1, deleteWorkspace],
  [4, makeWorkspace],
  [2, pause],
  [6, resume],
  [1, fc.oneof(loseTenant, loseStream, loseIntegration)],
];

export const aCommand: fc.Arbitrary<ModelCommand> = fc.oneof(
  ...WEIGHTED.map(([weight, arbitrary]) => ({ weight, arbitrary })),
);
