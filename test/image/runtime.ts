/** Container runtimes, whose commands are alike: builds and starts the image by the first one that works here. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readLastStage } from './dockerfile.ts'
import { isOk } from './world.ts'

const RUNTIMES = ['docker', 'podman', 'nerdctl']

/** What this machine needs to start a container, such as `--ulimit nofile=4096:4096`. */
const OPTIONS = process.env.TEST_CONTAINER_OPTIONS?.split(' ') ?? []
const HARDENED = [
  ...['--read-only', '--tmpfs=/tmp:size=64m,mode=1777'],
  ...['--cap-drop=all', '--security-opt=no-new-privileges', '--network=host'],
]

export interface Runtime {
  readonly name: string
  /** Makes an image of its root file system in `<folder>/image`, as the last stage of the Dockerfile does. */
  build(folder: string, version: string): string
  inspect(image: string): InspectedImage
  /** Why it cannot start a container on this machine. The exit codes are those of a runtime, not of the image. */
  findObstacle(image: string): string | undefined
  /** Runs a command of the image to its end. */
  run(image: string, command: readonly [entrypoint: string, ...args: string[]]): Ran
  /** Starts the image, with a read-only root and without capabilities. */
  start(image: string, env: Readonly<Record<string, string>>): RunningContainer
  remove(image: string): void
}

interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

interface InspectedImage {
  readonly Size: number
  readonly Config: {
    readonly User: string
    readonly Entrypoint: readonly string[]
    readonly Labels: Readonly<Record<string, string>>
  }
}

interface RunningContainer {
  /** Waits until the server at this URL is ready. */
  ready(url: string): Promise<void>
  exec(...command: readonly string[]): Ran
  /** Sends SIGTERM. Returns the exit code. */
  stop(): Promise<number | null>
  remove(): void
}

/** The first that answers: the command of Docker is often there without its daemon. */
export function findRuntime(): Runtime | undefined {
  const name = RUNTIMES.find(command => spawnSync(command, ['info'], { timeout: 20_000 }).status === 0)
  return name === undefined ? undefined : describeRuntime(name)
}

function describeRuntime(name: string): Runtime {
  const run = (...args: readonly string[]): Ran => spawnSync(name, args, { encoding: 'utf8' })
  return {
    name,
    build(folder, version) {
      const image = `localhost/sallyport-test:${process.pid}`
      mkdirSync(join(folder, 'data'))
      writeFileSync(join(folder, '.dockerignore'), '*\n!image\n!data\n')
      writeFileSync(join(folder, 'Dockerfile'), readLastStage().replaceAll('COPY --from=build', 'COPY'))
      const built = run('build', '--build-arg', `VERSION=${version}`, '--tag', image, folder)
      assert.equal(built.status, 0, built.stdout + built.stderr)
      return image
    },
    inspect: image => JSON.parse(run('image', 'inspect', image).stdout)[0],
    findObstacle(image) {
      const { status, stderr } = run('run', '--rm', ...HARDENED, ...OPTIONS, image, '--version')
      return status === 125 || status === 126 ? stderr.trim() : undefined
    },
    run: (image, [entrypoint, ...args]) =>
      run('run', '--rm', ...HARDENED, ...OPTIONS, '--entrypoint', entrypoint, image, ...args),
    start(image, env) {
      const container = `sallyport-test-${process.pid}`
      const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`])
      const args = ['run', '--name', container, ...HARDENED, ...OPTIONS, ...variables, image]
      const child = spawn(name, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      return describeContainer(child, (...words) => run(...words), container)
    },
    remove: image => void run('rmi', '--force', image),
  }
}

function describeContainer(
  child: ChildProcess,
  run: (...args: readonly string[]) => Ran,
  container: string,
): RunningContainer {
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', text => {
      log += text
    })
  const closed = once(child, 'close')
  return {
    async ready(url) {
      while (!(await isOk(`${url}/readyz`))) {
        assert.equal(child.exitCode, null, log)
        await pause(200)
      }
    },
    exec: (...command) => run('exec', container, ...command),
    async stop() {
      run('kill', '--signal', 'TERM', container)
      const [exitCode] = await closed
      return exitCode
    },
    remove: () => void run('rm', '--force', '--volumes', container),
  }
}
