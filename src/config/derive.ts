import { isIPv4, isIPv6 } from 'node:net'
import { resolve } from 'node:path'
import type { BaseSettings } from './setting-row.ts'
import type { SettingKey, Settings, SettingTree } from './settings-tree.ts'
import { settingRows } from './table.ts'

type Values = Readonly<Record<SettingKey, unknown>>

/** Fills in defaults that depend on other settings, and makes every path absolute. */
export function deriveSettings(values: Values, telemetry: Settings['telemetry'], cwd: string): Settings {
  const base = deriveBase(values, cwd)
  const entries = settingRows.map(([key, row]) => {
    const value = values[key]
    const resolved = value === undefined ? row.derive?.(base) : (row.type.resolve?.(value, cwd) ?? value)
    return [key, resolved] as const
  })
  const tree = plant(entries)
  const { metrics } = tree
  return {
    ...tree,
    metrics: { ...metrics, access: chooseMetricsAccess(metrics) },
    telemetry,
    onLoopback: base.onLoopback,
    developerTools: tree.lab,
  }
}

function deriveBase(values: Values, cwd: string): BaseSettings {
  const { issuerUrl, fhirBaseUrl, appUrl, dataDir, bind } = values as Partial<SettingTree>
  if (!issuerUrl || !fhirBaseUrl || !appUrl || !dataDir) throw new Error('Cannot derive settings: no default')
  const addressesOnLoopback = [issuerUrl, fhirBaseUrl, appUrl].every(isLoopbackUrl)
  const addresses = bind ?? (addressesOnLoopback ? ['127.0.0.1', '::1'] : ['0.0.0.0'])
  return {
    issuerUrl,
    fhirBaseUrl,
    appUrl,
    bind: addresses,
    dataDir: resolve(cwd, dataDir),
    onLoopback: addressesOnLoopback && addresses.every(isLoopbackHost),
  }
}

/** Makes a tree of keys such as `fhir.upstream.profile`. */
function plant(entries: readonly (readonly [key: string, value: unknown])[]): SettingTree {
  const tree: Branch = {}
  for (const [key, value] of entries) {
    const names = key.split('.')
    const last = names.pop() ?? key
    let branch = tree
    for (const name of names) {
      branch[name] ??= {}
      branch = branch[name] as Branch
    }
    branch[last] = value
  }
  return tree as unknown as SettingTree
}

interface Branch {
  [name: string]: unknown
}

export function getValue(settings: Settings, key: SettingKey): unknown {
  return key.split('.').reduce<unknown>((value, name) => (value as Branch)[name], settings)
}

function chooseMetricsAccess({ port, isOpen }: SettingTree['metrics']): Settings['metrics']['access'] {
  return port !== undefined ? 'nobody' : isOpen ? 'everyone' : 'loopback'
}

export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (isIPv4(bare)) return bare.startsWith('127.')
  if (isIPv6(bare)) return bare === '::1' || /^::ffff:(127\.|7f[0-9a-f]{2}:)/.test(bare)
  // RFC 6761, 6.3: `localhost` and every name under it.
  return bare === 'localhost' || bare.endsWith('.localhost')
}

export function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(new URL(url).hostname)
}

type HostSettings = Pick<Settings, 'bind' | 'issuerUrl' | 'fhirBaseUrl' | 'appUrl' | 'allowedHosts'>

/**
 * Decides which host names `Host` may contain. A server that listens only on loopback accepts loopback names and
 * configured names: in a DNS rebinding attack, the page sends its own name. Other servers accept any name, because
 * a proxy may send its own.
 */
export function createHostCheck({
  bind,
  issuerUrl,
  fhirBaseUrl,
  appUrl,
  allowedHosts,
}: HostSettings): (host: string) => boolean {
  if (!bind.every(isLoopbackHost)) return () => true
  const urls = [issuerUrl, fhirBaseUrl, appUrl]
  const known = new Set([...urls.map(url => removeBrackets(new URL(url).hostname)), ...allowedHosts])
  return host => known.has(removeBrackets(host)) || isLoopbackHost(host)
}

/** An IPv6 address has brackets in a URL and in `Host`, but not in the settings. */
function removeBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
}
