import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ROOT } from '../chart/support/helm.ts';
import { freePort } from '../support/free-port.ts';
import { type Example, missingLines, readExamples } from '../support/tour/readme.ts';

/** Programs that create clusters with Docker. */
export type Provider = 'k3d' | 'kind';

/** The port of this machine that the page uses. It may be in use by another program. */
const LOCAL_PORT = '8080';

const PAGE = readFileSync(join(ROOT, 'docs', 'quickstart.md'), 'utf8');

/** Returns the steps of the page for one provider. Without a provider, returns the steps that don't depend on it. */
export function quickstartSteps(provider?: Provider): Example[] {
  const others = ['k3d', 'kind'].filter(each => each !== provider);
  return readExamples(PAGE).filter(({ commands }) => !others.some(other => commands.startsWith(`${other} `)));
}

/** Runs the steps sequentially in the same shell so that variables are available to later steps. */
export class QuickstartShell {
  readonly #options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv };
  readonly #state: string;

  /** @param options.cwd project folder */
  constructor(options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly state: string }) {
    this.#options = options;
    this.#state = options.state;
  }

  /**
   * @throws if a step fails, or if its output does not contain a line shown on the page. The message includes the
   * output
   */
  async run({ commands, output }: Example): Promise<void> {
    const forwarded = commands.replaceAll(LOCAL_PORT, `${await freePort()}`);
    // Background processes are stopped at the end of the step even if a command fails.
    const script = [
      "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT",
      `touch '${this.#state}'; . '${this.#state}'`,
      forwarded,
      `declare -p VERSION > '${this.#state}'`,
    ].join('\n');
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      ...this.#options,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)));
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    const missing = missingLines(output, stdout);
    if (code !== 0 || missing.length > 0) {
      throw new Error(`exit code ${code}, missing ${JSON.stringify(missing)}:\n${commands}\n${stdout}\n${stderr}`);
    }
  }
}
