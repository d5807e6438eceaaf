import { createHash } from 'node:crypto'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

const ROOT = resolve(import.meta.dirname, '../..')
export const CHART = join(ROOT, 'deploy/helm/sallyport')
const RENDERED = join(import.meta.dirname, 'rendered')

/** How the chart is installed: `helm install sallyport --namespace ehr`. */
export const RELEASE = { name: 'sallyport', namespace: 'ehr' }

/** A documented values file: one of `ci/`, or the example of the README. */
export interface ValuesFile {
  readonly name: string
  readonly text: string
}

export function listValuesFiles(): readonly ValuesFile[] {
  const [, example] =
    /^```yaml\n# values\.yaml\n(.*?)^```$/ms.exec(readFileSync(join(CHART, 'README.md'), 'utf8')) ?? []
  if (example === undefined) throw new Error('The README of the chart shows no values.yaml')
  const files = readdirSync(join(CHART, 'ci')).map(file => ({
    name: file.replace('-values.yaml', ''),
    text: readFileSync(join(CHART, 'ci', file), 'utf8'),
  }))
  return [...files, { name: 'readme', text: example }]
}

/** The files of the chart by their paths. A release changes nothing but the versions, so these are left out. */
export function readChart(): ReadonlyMap<string, string> {
  const paths = globSync('{*.yaml,*.json,{templates,files}/**/*.*}', { cwd: CHART }).sort()
  return new Map(paths.map(path => [path, withoutVersion(readFileSync(join(CHART, path), 'utf8'), path)]))
}

function withoutVersion(text: string, path: string): string {
  return path === 'Chart.yaml' ? text.replace(/^(version|appVersion): .*$/gm, '$1: 0.0.0') : text
}

/** What Helm makes of a values file, as it is kept for tests on machines without Helm. */
export interface Rendered {
  readonly objects: readonly KubernetesObject[]
  readonly notes: string
}

export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // The specification of an object depends on its kind.
  readonly spec?: unknown
  readonly data?: Readonly<Record<string, string>>
}

/** The first line of a kept rendering: it says what was rendered, so that a test notices a later change. */
export function describeSource({ text }: ValuesFile, chart = readChart()): string {
  const hash = createHash('sha256')
  for (const [path, content] of chart) hash.update(JSON.stringify([path, content]))
  return `# npm run check:helm -- --write made this file. Chart and values: ${hash.update(text).digest('hex')}\n`
}

export function renderedPath({ name }: ValuesFile): string {
  return join(RENDERED, `${name}.yaml`)
}

/** The names of all kept renderings. */
export function listRendered(): readonly string[] {
  return readdirSync(RENDERED).map(file => file.replace('.yaml', ''))
}

/** The kept rendering. Fails if the chart or the values have changed since. */
export function readRendered(values: ValuesFile): Rendered {
  const path = renderedPath(values)
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (!text.startsWith(describeSource(values)))
    throw new Error(`${path} is out of date: run npm run check:helm -- --write`)
  const objects: readonly KubernetesObject[] = parseAllDocuments(text)
    .map(document => document.toJS())
    .filter(it => it !== null)
  const isNotes = ({ metadata }: KubernetesObject) => metadata.name === NOTES
  const notes = objects.find(isNotes)?.data?.notes ?? ''
  return { objects: objects.filter(it => !isNotes(it)), notes }
}

/** `helm template` leaves out NOTES.txt, so it is rendered as an object of this name. */
export const NOTES = 'notes-of-the-chart'

/** The values that name objects which an administrator creates. */
export interface Values {
  readonly existingSecret: string
  readonly secretKeys?: readonly (string | { variable: string; secret: string; key: string })[]
  readonly migration?: { readonly existingSecret?: string; readonly secretKey?: string }
  readonly verification?: { readonly enabled?: boolean }
  readonly policy?: { readonly existingConfigMap?: string }
  readonly certificateAuthorities?: { readonly existingConfigMap?: string }
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly extraVolumes?: readonly { readonly configMap: { readonly name: string } }[]
}

export function readValues({ text }: ValuesFile): Values {
  return parse(text)
}

/** The variables that all servers get from the chart's ConfigMap. */
export function findSettings({ objects }: Rendered): Readonly<Record<string, string>> {
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === RELEASE.name)
  if (found?.data === undefined) throw new Error('The chart has no ConfigMap')
  return found.data
}

/** Where requests for a host and a path go. */
interface Target {
  readonly host: string
  readonly path: string
  readonly service: string
}

/** Where the public URLs lead: by the Ingresses, the HTTPRoutes, or as the notes ask an administrator to do. */
export function findRoutes(rendered: Rendered): readonly Target[] {
  const declared = rendered.objects.flatMap(({ kind, spec }) => {
    if (kind === 'Ingress') return readIngress(spec)
    return kind === 'HTTPRoute' ? readHttpRoute(spec) : []
  })
  if (declared.length > 0) return declared
  const settings = findSettings(rendered)
  return [
    'SMART_ISSUER_URL sallyport-auth',
    'SMART_FHIR_BASE_URL sallyport-fhir',
    'SMART_APP_URL sallyport-app',
  ].map(line => {
    const [variable = '', service = ''] = line.split(' ')
    const { hostname: host, pathname: path } = new URL(settings[variable] ?? '')
    return { host, path, service }
  })
}

function readIngress(spec: unknown): Target {
  const { rules } = spec as {
    rules: [{ host: string; http: { paths: [{ path: string; backend: { service: { name: string } } }] } }]
  }
  const [{ path, backend }] = rules[0].http.paths
  return { host: rules[0].host, path, service: backend.service.name }
}

function readHttpRoute(spec: unknown): Target {
  const { hostnames, rules } = spec as {
    hostnames: [string]
    rules: [{ matches: [{ path: { value: string } }]; backendRefs: [{ name: string }] }]
  }
  const [{ matches, backendRefs }] = rules
  return { host: hostnames[0], path: matches[0].path.value, service: backendRefs[0].name }
}
