import { registerIndexes, surveySharedIndexes, type WorkSources } from '../../hints/work-metrics.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import { createSampler } from '../../telemetry/sampler.ts';
import { readParts } from '../members/listed-parts.ts';
import { createLookAtWork } from './look-at-work.ts';
import { createSurvey, type Survey } from './survey.ts';

/** Returns the last result. While Redis is not available, this is undefined. */
export type ReadSurvey = () => Promise<Survey | undefined>;

/** Samples the pending work of parts on demand. */
export function createSurveySampler(redis: RedisClient): ReadSurvey {
  const survey = createSurvey({
    readParts: () => readParts(redis),
    look: createLookAtWork(redis),
    random: Math.random,
  });
  return createSampler(survey);
}

/**
 * Registers the metrics for work that is waiting. Every process serves these metrics because the process that should do
 * the work might be missing. The values are the same in all processes (except for when they were sampled).
 */
export function registerWorkMetrics(registry: Registry, sources: WorkSources & { readonly survey: ReadSurvey }): void {
  const { survey } = sources;
  registerIndexes(registry, {
    queues: async () => (await survey())?.queues,
    parts: async () => (await survey())?.parts,
    ...surveySharedIndexes(sources),
  });
}
