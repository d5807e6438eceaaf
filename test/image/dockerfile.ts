import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, matchesGlob, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

/** What a container runtime takes from the image: the last stage of the Dockerfile. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>
  readonly uid: number
  readonly gid: number
  readonly workingFolder: string
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
  /** The folders of the image that belong to its user. */
  readonly ownFolders: readonly string[]
}

/** The last stage of the Dockerfile, which takes its files from the stage before. */
export function readLastStage(): string {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').replaceAll('\\\n', '')
  return text.slice(text.lastIndexOf('\nFROM '))
}

export function readDockerfile(): ImageConfig {
  const stage = readLastStage()
  const find = (pattern: RegExp): string => {
    const [, found] = pattern.exec(stage) ?? []
    if (found === undefined) throw new Error(`The Dockerfile has no ${pattern}`)
    return found
  }
  const [uid = Number.NaN, gid = Number.NaN] = find(/^USER (\d+:\d+)$/m)
    .split(':')
    .map(Number)
  return {
    env: Object.fromEntries(
      find(/^ENV (.*)$/m)
        .split(' ')
        .map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    ),
    uid,
    gid,
    workingFolder: find(/^WORKDIR (.*)$/m),
    entrypoint: JSON.parse(find(/^ENTRYPOINT (.*)$/m)),
    command: JSON.parse(find(/^CMD (.*)$/m)),
    healthcheck: JSON.parse(find(/^HEALTHCHECK .*CMD (.*)$/m)),
    ownFolders: [...stage.matchAll(/^COPY --from=build --chown=10001:10001 \S+ (\S+)$/gm)].map(
      ([, path = '']) => path,
    ),
  }
}

/** The command of the Dockerfile that makes the root file system in `/image`. */
export function readBuildCommand(): string {
  const [, command] =
    /^RUN (.* scripts\/image\/root\.ts \/image)\b/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? []
  if (command === undefined) throw new Error('The Dockerfile does not run scripts/image/root.ts')
  return command
}

/** Copies the files that the build of an image gets to see (`.dockerignore`), with the packages that `npm ci` installs there. */
export function copyBuildContext(into: string): void {
  const rules = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter(line => line !== '')
  const kept = rules.filter(rule => rule.startsWith('!')).map(rule => rule.slice(1))
  const ignored = rules.filter(rule => rule.startsWith('**/'))
  if (1 + kept.length + ignored.length !== rules.length || rules[0] !== '*')
    throw new Error('.dockerignore has rules that this test does not know')
  for (const path of kept.flatMap(pattern => globSync(pattern, { cwd: ROOT }))) {
    const isKept = (source: string) => !ignored.some(rule => matchesGlob(source.slice(ROOT.length + 1), rule))
    mkdirSync(dirname(join(into, path)), { recursive: true })
    cpSync(join(ROOT, path), join(into, path), { recursive: true, filter: isKept })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(into, 'node_modules'))
}
