/**
 * `node scripts/release/artifacts.ts <folder> [--repository <URL>]`: makes what a release publishes of the checked-out version: the two npm
 * packages, the Helm chart, their bills of materials, the notes of the CHANGELOG and the checksums. `npm run release` and the
 * workflow that publishes both call it, so that they make the same files. Without Helm it says that there is no chart.
 *
 * npm accepts a package with provenance only if the manifest names the repository that the workflow runs in.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { findNotes } from './changelog.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const CHECKSUMS = 'SHA256SUMS'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { repository: { type: 'string' } },
})
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
makeArtifacts(resolve(positionals[0] ?? join(ROOT, 'release')))

function makeArtifacts(folder: string): void {
  mkdirSync(folder, { recursive: true })
  writeNotes(folder)
  makePackages(folder)
  makeChart(folder)
  writeChecksums(folder)
}

function writeNotes(folder: string): void {
  const notes = findNotes(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version)
  if (notes === undefined) throw new Error(`CHANGELOG.md has no section for ${version}`)
  writeFileSync(join(folder, 'notes.md'), `${notes}\n`)
}

function makePackages(folder: string): void {
  const repository = values.repository === undefined ? [] : ['--repository', values.repository]
  if (repository.length === 0)
    process.stderr.write(
      'NOT SET: the repository of the packages, so npm refuses to publish them with provenance\n',
    )
  run('node', 'scripts/build.ts', ...repository)
  for (const [name = '', ...which] of [['sallyport'], ['sallyport-interceptor', '--interceptor']]) {
    run('npm', 'pack', `./dist/${name}`, '--pack-destination', folder)
    writeFileSync(join(folder, `${name}.cdx.json`), capture('node', 'scripts/release/sbom.ts', ...which))
  }
}

/** Helm names the file of the chart as npm names that of the package. */
function makeChart(folder: string): void {
  if (spawnSync('helm', ['version']).status !== 0) {
    process.stderr.write('NOT MADE: the package of the chart, because Helm is not installed\n')
    return
  }
  const made = mkdtempSync(join(tmpdir(), 'sallyport-chart-'))
  try {
    run('helm', 'package', 'deploy/helm/sallyport', '--destination', made)
    cpSync(join(made, `sallyport-${version}.tgz`), join(folder, `sallyport-chart-${version}.tgz`))
  } finally {
    rmSync(made, { recursive: true })
  }
}

function writeChecksums(folder: string): void {
  const names = readdirSync(folder).filter(name => name !== CHECKSUMS)
  const lines = names.map(name => {
    const hash = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex')
    return `${hash}  ${name}\n`
  })
  writeFileSync(join(folder, CHECKSUMS), lines.join(''))
}

function run(command: string, ...args: readonly string[]): void {
  execFileSync(command, args, { cwd: ROOT, stdio: 'inherit' })
}

function capture(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 })
}
