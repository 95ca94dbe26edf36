import { EVENT_PROBLEMS } from './event-problems.ts';
import { REQUEST_PROBLEMS } from './request-problems.ts';
import { RESOURCE_PROBLEMS } from './resource-problems.ts';

/**
 * Every problem that an answer may contain, by its stable code. The only source of statuses and titles: routes name
 * codes, never numbers. Codes are only added; the meaning of a released code does not change.
 */
export const PROBLEMS = { ...REQUEST_PROBLEMS, ...EVENT_PROBLEMS, ...RESOURCE_PROBLEMS };

export type ProblemCode = keyof typeof PROBLEMS;
