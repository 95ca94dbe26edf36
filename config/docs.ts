import type { z } from 'zod';
import { ENVIRONMENT, ROLES } from '../src/config.ts';
import { renderKinds } from './docs-kinds.ts';
import { renderMetrics } from './docs-metrics.ts';
import { renderPermissions } from './docs-permissions.ts';
import { renderProblemPages, renderProblems } from './docs-problems.ts';
import { renderOpenApi, renderRest } from './docs-rest.ts';
import type { GeneratedFile } from './generate.ts';
import { type Row, table } from './markdown.ts';

/** The reference pages in docs/, from what the code itself reads. */
export async function renderDocs(): Promise<GeneratedFile[]> {
  return [
    page('configuration', 'src/config.ts', renderConfiguration()),
    page('kinds', 'src/api', renderKinds()),
    page('metrics', 'the roles', await renderMetrics()),
    page('permissions', 'config/permissions.ts and config/admission.ts', renderPermissions()),
    page('rest', 'src/facade/routes.ts', renderRest()),
    page('problems', 'src/core/problems.ts', renderProblems()),
    ...renderProblemPages().map(({ code, text }) => page(`problems/${code}`, 'src/core/problems.ts', text)),
    { path: 'docs/openapi.json', text: renderOpenApi() },
  ];
}

function page(name: string, source: string, text: string): GeneratedFile {
  const origin = `<!-- Generated from ${source} by config/generate.ts. Change it there. -->`;
  return { path: `docs/${name}.md`, text: `${origin}\n\n${text}\n` };
}

/** docs/configuration.md: the command's argument and every environment variable. */
function renderConfiguration(): string {
  return [
    '# Configuration',
    `\`bin/sluice <role>\` starts one role: ${ROLES.map(role => `\`${role}\``).join(', ')}; \`bin/sluice all\` starts all of them in one process. Everything else is said by environment variables. A variable that starts with \`SLUICE_\` and is not listed here stops the start, with the name that was probably meant.`,
    table(['Variable', 'Default', 'Meaning'], Object.entries(ENVIRONMENT).map(variableRow)),
    'The cluster is found by `KUBECONFIG`, else by the service account of the pod. Only the controller and the facade talk to Kubernetes; what each of them needs is on the page about [permissions](permissions.md).',
    'The root key signs deliveries, makes the tokens of invitations and seals what lies in Redis: make one file (`head -c 32 /dev/urandom > root.key`), keep it, and give the same to every controller and dispatcher.',
  ].join('\n\n');
}

function variableRow([name, schema]: [string, z.ZodType]): Row {
  const fallback = schema.safeParse(undefined).data;
  const shown = typeof fallback === 'string' || typeof fallback === 'number' ? `\`${fallback}\`` : '';
  return [`\`${name}\``, shown, schema.description ?? ''];
}
