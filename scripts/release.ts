/**
 * `npm run release -- 0.2.0 [--checked]`: releases what is committed. Checks everything, compares the speed with that of the last
 * release (on a machine that does nothing else), sets version and CHANGELOG, keeps the databases of this version for tests of later
 * upgrades, makes packages, chart (by Helm), image (if Buildah is installed), bills of materials and checksums in `release/`, and
 * commits and tags the release. Pushing the tag and publishing are left to a person.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startPostgres } from '../test/support/postgres.ts'
import { saveRelease } from '../test/support/release-data.ts'
import { follows, releaseChanges } from './release/changelog.ts'

const ROOT = resolve(import.meta.dirname, '..')
const OUTPUT = join(ROOT, 'release')
const version = process.argv[2] ?? ''

await release()

async function release(): Promise<void> {
  const { version: before } = JSON.parse(readText('package.json'))
  if (!follows(version, before))
    stop(`give a version after ${before}, such as 0.${Number(before.split('.')[1]) + 1}.0`)
  if (capture('git', 'status', '--porcelain') !== '') stop('commit or remove your changes first')
  if (!isInstalled('helm', 'version')) stop('install Helm, which makes the package of the chart')
  const changes = releaseChanges(readText('CHANGELOG.md'), version, new Date().toISOString().slice(0, 10))
  if (typeof changes === 'string') stop(changes)
  // For a commit that CI has checked already.
  if (!process.argv.includes('--checked')) {
    process.env.TEST_THOROUGH = 'true'
    run('npm', 'run', '--silent', 'check')
    run('npm', 'run', '--silent', 'test:package')
  }
  // Stops on a figure that rose by more than a tenth without a reason in the CHANGELOG.
  run('npm', 'run', '--silent', 'bench', '--', '--against', 'release', '--write-docs')

  run('npm', 'version', version, '--no-git-tag-version')
  writeFileSync(join(ROOT, 'CHANGELOG.md'), changes.changelog)
  setChartVersion()
  // The kept renderings of the chart and the documentation hold for every version.
  run('node', 'scripts/test.ts', 'test/image/chart.test.ts', 'scripts/release')
  run('node', 'scripts/check-docs.ts')
  await keepDatabases()
  run('git', 'add', '--all')
  run('git', 'commit', '--quiet', '--message', `release: ${version}`)

  rmSync(OUTPUT, { recursive: true, force: true })
  mkdirSync(OUTPUT)
  makeImage()
  const repository = findRepository()
  run('node', 'scripts/release/artifacts.ts', OUTPUT, ...(repository ? ['--repository', repository] : []))
  run('git', 'tag', '--annotate', `v${version}`, '--message', `Sallyport ${version}`)
  process.stdout.write(`\nReleased ${version}: ${readdirSync(OUTPUT).join(', ')} in release/.
Publish with: git push --follow-tags\n`)
}

function setChartVersion(): void {
  const path = join(ROOT, 'deploy/helm/sallyport/Chart.yaml')
  const chart = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    chart
      .replace(/^version: .*$/m, `version: ${version}`)
      .replace(/^appVersion: .*$/m, `appVersion: ${version}`),
  )
}

async function keepDatabases(): Promise<void> {
  const postgres = await startPostgres()
  try {
    await saveRelease(join(ROOT, 'test/releases', version), postgres.url)
  } finally {
    await postgres.stop()
  }
}

function makeImage(): void {
  if (!isInstalled('buildah', '--version')) {
    process.stderr.write('NOT MADE: the image and its bill of materials, because Buildah is not installed\n')
    return
  }
  run('node', 'scripts/image.ts', OUTPUT)
}

function isInstalled(command: string, asks: string): boolean {
  return spawnSync(command, [asks]).status === 0
}

/** The web address of the remote `origin`, without credentials, unless it is a folder. */
function findRepository(): string | undefined {
  const { stdout } = spawnSync('git', ['remote', 'get-url', 'origin'], { cwd: ROOT, encoding: 'utf8' })
  const remote = stdout.trim().replace(/^git@([\w.-]+):/, 'ssh://git@$1/')
  if (!/^(https|ssh):/.test(remote) || !URL.canParse(remote)) return undefined
  const { hostname, pathname } = new URL(remote)
  return `https://${hostname}${pathname.replace(/\.git$/, '')}`
}

function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function run(command: string, ...args: readonly string[]): void {
  process.stdout.write(`> ${command} ${args.join(' ')}\n`)
  if (spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' }).status !== 0)
    stop(`${command} ${args[0]} failed`)
}

function capture(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (status !== 0) stop(`${command} ${args[0]} failed: ${stderr}`)
  return stdout
}

function stop(reason: string): never {
  process.stderr.write(`Cannot release ${version}: ${reason}\n`)
  process.exit(1)
}
