import { dirname, join, relative } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

/** The entry point of the program, relative to the project. */
const ENTRY = 'src/sluice.ts';

/** The URL of the folder that contains `src` and `node_modules`, in a bundle. */
const ROOT_NAME = '__root';

export interface BundleOptions {
  /** The folder with `src`, `package.json`, and `node_modules`. */
  readonly project: string;
  /** The folder for the bundle, which is emptied first. */
  readonly folder: string;
  /**
   * The path from the bundle to the folder that contains `src` and `node_modules` when the program runs. Other files,
   * such as scripts for Redis, are loaded from there.
   */
  readonly toRoot: string;
}

/**
 * Bundles the program and all packages it loads into a few JavaScript files: `sluice.js`, and others for each role.
 * Compared to loading every module from its own file, a role loads in about half of the time, and uses about
 * 10 MB less memory. The files only depend on the sources, and not on the folders.
 *
 * @returns the paths of the bundled modules, relative to the project
 */
export async function bundleProgram({ project, folder, toRoot }: BundleOptions): Promise<string[]> {
  const bundle = await rolldown({
    cwd: project,
    input: { sluice: join(project, ENTRY) },
    platform: 'node',
    // Otherwise, calls that seem to have no effect are removed, such as a decodeURI that only validates its argument.
    treeshake: false,
    optimization: { inlineConst: false },
    // The paths of modules start with the project even if its node_modules is a link.
    resolve: { symlinks: false },
    plugins: [keepPaths(project)],
    onLog(level, log) {
      throw new Error(`cannot bundle the program: ${level}: ${log.message}`);
    },
  });
  try {
    const { output } = await bundle.write({
      dir: folder,
      cleanDir: true,
      format: 'esm',
      minify: false,
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
      comments: { legal: true, annotation: false, jsdoc: false },
      intro: `const ${ROOT_NAME} = new URL(${JSON.stringify(`${toRoot}/`)}, import.meta.url);`,
    });
    const modules = output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []));
    return modules.filter(id => id.startsWith(project)).map(id => relative(project, id));
  } finally {
    await bundle.close();
  }
}

/** Keeps the paths that modules derive from their own location. */
function keepPaths(project: string): Plugin {
  return {
    name: 'keep-paths',
    transform(code, id) {
      if (!id.startsWith(project) || !/\bimport\.meta\.url\b|\b__dirname\b/.test(code)) return undefined;
      const path = relative(project, id);
      const url = (to: string) => `new URL(${JSON.stringify(to)}, ${ROOT_NAME})`;
      return code
        .replaceAll(/\bimport\.meta\.url\b/g, `${url(path)}.href`)
        .replaceAll(/\b__dirname\b/g, `decodeURIComponent(${url(dirname(path))}.pathname)`);
    },
  };
}
