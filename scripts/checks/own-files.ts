import { OWN_FILES, OWN_PROGRAMS } from '../../src/core/own-files.ts'
import type { Sources } from './modules.ts'

const HOME = 'src/core/own-files.ts'

/** What looks for something else than a file of ours. */
const ALLOWED: Readonly<Record<string, string>> = {
  'src/cli/main.ts': "enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/sallyport'))",
  'src/launcher/find-node.ts': 'createRequire(import.meta.url)',
}

/** How a file finds another by its own place. */
const OWN_PLACE =
  /\bimport\.meta\.(?:url|dirname|filename|resolve)\b|\b__(?:dirname|filename)\b|\bprocess\.argv\[1\]/

/** Files that the program finds beside its source without the list of those that the build copies, and files that nobody copies. */
export function findOwnFileFaults(sources: Sources, files: readonly string[]): readonly string[] {
  const known = [...OWN_FILES, ...OWN_PROGRAMS.map(path => `${path}.ts`)]
  return [
    ...[...sources]
      .filter(([file]) => isShipped(file) && file !== HOME)
      .flatMap(([file, text]) => {
        const [place] = OWN_PLACE.exec(text.replace(ALLOWED[file] ?? '', '')) ?? []
        return place === undefined ? [] : [`${file}: ${place}: ${HOME} finds the files of ours`]
      }),
    ...known
      .filter(path => !files.some(file => isBelow(file, path)))
      .map(path => `${HOME}: there is no ${path}`),
    ...files
      .filter(
        file => isShipped(file) && !/\.(?:ts|md)$/.test(file) && !OWN_FILES.some(path => isBelow(file, path)),
      )
      .map(file => `${file}: no package has it, because ${HOME} does not name it`),
  ]
}

function isShipped(file: string): boolean {
  return file.startsWith('src/') && !file.endsWith('.test.ts') && !file.includes('/testing/')
}

function isBelow(file: string, path: string): boolean {
  return file === path || file.startsWith(`${path}/`)
}
