/**
 * A cluster that understands the objects of the chart and nothing else: it does with them what Helm and Kubernetes do, in their
 * order, and fails if an object refers to one that is not there yet, or has a field that it does not know.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { KubernetesObject } from './chart.ts'
import { addAddress, type Container, type Finished, type Machine, type Mount } from './machine.ts'
import { IS_ROOT } from './namespaces.ts'
import { type Forward, forward, isOk, type Place } from './world.ts'

type Texts = Readonly<Record<string, string>>

interface Key {
  readonly name: string
  readonly key: string
}

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly configMapKeyRef?: Key; readonly secretKeyRef?: Key }
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface PodContainer {
  readonly name: string
  readonly args: readonly string[]
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly env?: readonly Variable[]
  readonly securityContext: {
    readonly readOnlyRootFilesystem: boolean
    readonly allowPrivilegeEscalation: boolean
    readonly capabilities: { readonly drop: readonly string[] }
  }
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe?: Probe
  readonly readinessProbe?: Probe
  readonly livenessProbe?: Probe
}

interface Item {
  readonly key: string
  readonly path: string
}

interface Volume {
  readonly name: string
  readonly emptyDir?: { readonly sizeLimit: string }
  readonly configMap?: { readonly name: string }
  readonly projected?: {
    readonly defaultMode: number
    readonly sources: readonly {
      readonly secret: { readonly name: string; readonly items: readonly Item[] }
    }[]
  }
}

interface PodSpec {
  readonly containers: readonly PodContainer[]
  readonly volumes?: readonly Volume[]
  readonly hostAliases?: readonly { readonly ip: string; readonly hostnames: readonly string[] }[]
  readonly serviceAccountName?: string
  readonly securityContext: {
    readonly runAsUser: number
    readonly runAsGroup: number
    readonly fsGroup: number
  }
}

/** Where a pod runs, and with which priority, does not matter here. */
const IGNORED = {
  pod: [
    'affinity',
    'automountServiceAccountToken',
    'dnsConfig',
    'enableServiceLinks',
    'imagePullSecrets',
    'nodeSelector',
    'priorityClassName',
    'restartPolicy',
    'terminationGracePeriodSeconds',
    'tolerations',
    'topologySpreadConstraints',
  ],
  container: ['image', 'imagePullPolicy', 'resources'],
}
const KNOWN = {
  pod: ['containers', 'volumes', 'hostAliases', 'serviceAccountName', 'securityContext'],
  container: [
    'name',
    'args',
    'envFrom',
    'env',
    'securityContext',
    'volumeMounts',
    'ports',
    'startupProbe',
    'readinessProbe',
    'livenessProbe',
  ],
}

/** Stands for the authorities that Node trusts by itself: none of them gives a test a certificate. */
const PUBLIC = '/etc/public-authorities'

/** A pod that runs. */
export interface Pod {
  readonly name: string
  readonly container: Container
  readonly address: string
  readonly ports: ReadonlyMap<string, number>
}

export interface Cluster {
  readonly pods: ReadonlyMap<string, Pod>
  /** Creates an object that an administrator makes before the installation. */
  create(kind: 'Secret' | 'ConfigMap', name: string, data: Texts): void
  /** `helm install --wait`: hooks, then everything else, until the servers are ready. */
  install(objects: readonly KubernetesObject[]): Promise<void>
  /** `helm test`. */
  test(objects: readonly KubernetesObject[]): Promise<readonly Finished[]>
  /** `kubectl create job --from=cronjob/<name>`, of every CronJob. */
  runCronJobs(objects: readonly KubernetesObject[]): Promise<readonly Finished[]>
  /** `kubectl exec deploy/<name> -- <command>`. */
  exec(deployment: string, command: readonly string[], stdin?: string): Promise<Finished>
  /** Where a Service leads to. */
  findBackend(service: string): Place
  close(): Promise<void>
}

interface Surroundings {
  /** Names and addresses that pods find by DNS. */
  readonly hosts: Texts
  /** Of the public URLs. Nobody but the hospital's own authorities is trusted where the values name these. */
  readonly certificate: string
}

export function openCluster(
  machine: Machine,
  user: { readonly uid: number; readonly gid: number },
  { hosts, certificate }: Surroundings,
): Cluster {
  const stored = new Map<string, Texts>()
  const accounts = new Set(['default'])
  const pods = new Map<string, Pod>()
  const services = new Map<string, Place>()
  const names: Record<string, string> = { ...hosts }
  const forwards: Forward[] = []

  function read(kind: 'Secret' | 'ConfigMap', name: string): Texts {
    return stored.get(`${kind} ${name}`) ?? assert.fail(`${kind} ${name} does not exist yet`)
  }

  function readKey(kind: 'Secret' | 'ConfigMap', { name, key }: Key): string {
    return read(kind, name)[key] ?? assert.fail(`${kind} ${name} has no key ${key}`)
  }

  function readVariable({ value, valueFrom }: Variable): string {
    if (value !== undefined) return value
    if (valueFrom?.secretKeyRef) return readKey('Secret', valueFrom.secretKeyRef)
    return readKey('ConfigMap', valueFrom?.configMapKeyRef ?? assert.fail('a variable without a value'))
  }

  function readVariables({ envFrom = [], env = [] }: PodContainer): Texts {
    const names = env.map(({ name }) => name)
    assert.deepEqual(names, [...new Set(names)], 'a variable is set twice')
    return Object.assign(
      {},
      ...envFrom.map(({ configMapRef }) => read('ConfigMap', configMapRef.name)),
      Object.fromEntries(env.map(variable => [variable.name, readVariable(variable)])),
    )
  }

  function readVolume(volume: Volume, path: string): Mount {
    const { emptyDir, configMap, projected } = volume
    if (emptyDir) {
      const { uid, gid } = user
      const size = emptyDir.sizeLimit.replace('Mi', 'm')
      // Without rights there is no other user.
      return { path, options: `tmpfs,size=${size},mode=2777,uid=${IS_ROOT ? 0 : uid},gid=${gid}` }
    }
    if (configMap) return { path, options: 'ro', files: read('ConfigMap', configMap.name) }
    const items = projected?.sources.flatMap(({ secret }) =>
      secret.items.map(item => [item.path, readKey('Secret', { name: secret.name, key: item.key })]),
    )
    if (!items) return assert.fail(`a volume of another kind: ${JSON.stringify(volume)}`)
    return { path, options: 'ro', files: Object.fromEntries(items), mode: projected?.defaultMode ?? 0o644 }
  }

  async function startPod(name: string, spec: PodSpec): Promise<Pod> {
    assertKnown(spec, 'pod', name)
    const {
      containers,
      volumes = [],
      hostAliases = [],
      serviceAccountName = 'default',
      securityContext,
    } = spec
    assert(accounts.has(serviceAccountName), `the ServiceAccount ${serviceAccountName} does not exist yet`)
    const { runAsUser, runAsGroup, fsGroup } = securityContext
    assert.deepEqual([runAsUser, runAsGroup, fsGroup], [user.uid, user.gid, user.gid])
    const [only, ...others] = containers
    assert(only && others.length === 0, `${name} has several containers`)
    assertKnown(only, 'container', name)
    assert.deepEqual(only.securityContext.capabilities.drop, ['ALL'])
    assert.equal(only.securityContext.allowPrivilegeEscalation, false)
    const mounts = (only.volumeMounts ?? []).map(({ name: wanted, mountPath }) => {
      const volume = volumes.find(it => it.name === wanted)
      return readVolume(volume ?? assert.fail(`${name} has no volume ${wanted}`), mountPath)
    })
    const aliases = hostAliases.flatMap(({ ip, hostnames }) => hostnames.map(host => [host, ip]))
    const network = await machine.createNetwork()
    const container = await machine.start({
      name,
      args: only.args,
      env: { NODE_EXTRA_CA_CERTS: join(PUBLIC, 'ca.crt'), ...readVariables(only) },
      mounts: [...mounts, { path: PUBLIC, options: 'ro', files: { 'ca.crt': certificate } }],
      isReadOnly: only.securityContext.readOnlyRootFilesystem,
      hosts: { ...names, ...Object.fromEntries(aliases) },
      network,
    })
    const ports = new Map((only.ports ?? []).map(port => [port.name, port.containerPort]))
    return { name, container, address: network.address, ports }
  }

  async function runPod(name: string, spec: PodSpec): Promise<Finished> {
    return (await startPod(name, spec)).container.ended()
  }

  /** A hook: a ConfigMap, or a Job until its end. */
  async function runHook({ kind, metadata, data = {}, spec }: KubernetesObject): Promise<void> {
    if (kind === 'ConfigMap') return void stored.set(`ConfigMap ${metadata.name}`, data)
    assert.equal(kind, 'Job')
    const { exitCode, output } = await runPod(metadata.name, podOf(spec))
    assert.equal(exitCode, 0, `the Job ${metadata.name} failed:\n${output}`)
  }

  /** Addresses of Services come first: pods find all of them. */
  function addService({ metadata, spec }: KubernetesObject, at: number): void {
    const host = `10.96.1.${at + 1}`
    addAddress(host)
    names[metadata.name] = host
    const { port } = serviceOf(spec).ports.find(it => it.name === 'http') ?? assert.fail(metadata.name)
    services.set(metadata.name, { host, port })
  }

  async function publish({ metadata, spec }: KubernetesObject): Promise<void> {
    const { selector, ports } = serviceOf(spec)
    const target = pods.get(metadata.name) ?? assert.fail(`no pod for the Service ${metadata.name}`)
    assert(metadata.name.endsWith(`-${selector['app.kubernetes.io/component']}`))
    for (const { port, targetPort } of ports) {
      const to = target.ports.get(targetPort) ?? assert.fail(`${target.name} has no port ${targetPort}`)
      forwards.push(
        await forward({ host: names[metadata.name] ?? '', port }, { host: target.address, port: to }),
      )
    }
  }

  async function install(objects: readonly KubernetesObject[]): Promise<void> {
    const hooks = objects.filter(it => hookOf(it).includes('pre-install'))
    const weight = ({ metadata }: KubernetesObject) =>
      Number(metadata.annotations?.['helm.sh/hook-weight'] ?? 0)
    for (const hook of hooks.toSorted((a, b) => weight(a) - weight(b))) await runHook(hook)
    for (const { kind, metadata } of hooks)
      if (metadata.annotations?.['helm.sh/hook-delete-policy']?.includes('hook-succeeded'))
        stored.delete(`${kind} ${metadata.name}`)
    const own = objects.filter(it => hookOf(it) === '')
    const ofKind = (kind: string) => own.filter(it => it.kind === kind)
    for (const { metadata } of ofKind('ServiceAccount')) accounts.add(metadata.name)
    for (const { metadata, data = {} } of ofKind('ConfigMap')) stored.set(`ConfigMap ${metadata.name}`, data)
    for (const [at, service] of ofKind('Service').entries()) addService(service, at)
    for (const { metadata, spec } of ofKind('Deployment'))
      pods.set(metadata.name, await startPod(metadata.name, podOf(spec)))
    for (const service of ofKind('Service')) await publish(service)
    for (const { metadata, spec } of ofKind('Deployment')) await waitUntilReady(metadata.name, podOf(spec))
  }

  async function waitUntilReady(name: string, { containers }: PodSpec): Promise<void> {
    const pod = pods.get(name) ?? assert.fail(name)
    for (const kind of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
      const { path, port } = containers[0]?.[kind]?.httpGet ?? assert.fail(`${name} has no ${kind}`)
      while (!(await isOk(`http://${pod.address}:${pod.ports.get(port)}${path}`))) {
        if (!pod.container.isRunning()) assert.fail(`${name} has ended:\n${pod.container.log()}`)
        await pause(100)
      }
    }
  }

  return {
    pods,
    create: (kind, name, data) => void stored.set(`${kind} ${name}`, data),
    install,
    test: objects =>
      Promise.all(
        objects
          .filter(it => hookOf(it) === 'test')
          .map(({ metadata, spec }) => runPod(metadata.name, podOf({ template: { spec } }))),
      ),
    runCronJobs: objects =>
      Promise.all(
        objects
          .filter(it => it.kind === 'CronJob')
          .map(({ metadata, spec }) => runPod(metadata.name, podOfCronJob(spec))),
      ),
    exec: (deployment, command, stdin) =>
      (pods.get(deployment) ?? assert.fail(deployment)).container.exec(command, stdin),
    findBackend: service => services.get(service) ?? assert.fail(`no Service ${service}`),
    async close() {
      for (const each of forwards) each.close()
    },
  }
}

function hookOf({ metadata }: KubernetesObject): string {
  return metadata.annotations?.['helm.sh/hook'] ?? ''
}

function assertKnown(value: object, what: 'pod' | 'container', name: string): void {
  const unknown = Object.keys(value).filter(it => !IGNORED[what].includes(it) && !KNOWN[what].includes(it))
  assert.deepEqual(unknown, [], `fields of ${name} that this test does not know`)
}

/** The specification of the pods of a Deployment or Job. */
function podOf(spec: unknown): PodSpec {
  const { template } = spec as { readonly template: { readonly spec: PodSpec } }
  return template.spec
}

function podOfCronJob(spec: unknown): PodSpec {
  const { jobTemplate } = spec as { readonly jobTemplate: { readonly spec: unknown } }
  return podOf(jobTemplate.spec)
}

function serviceOf(spec: unknown) {
  return spec as {
    readonly selector: Texts
    readonly ports: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[]
  }
}
