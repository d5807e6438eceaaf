import { parseJson } from '../core/index.ts'
import { showIds } from './providers/providers.ts'
import type { SettingType } from './setting-types.ts'
import * as types from './setting-types.ts'

/** A CDS service that the portal calls (CDS Hooks 2.0). */
export interface CdsService {
  /** The id of the service at its base URL. */
  readonly id: string
  readonly name: string
  /** The base URL: its services are at `{url}/cds-services/{id}`. */
  readonly url: string
  /** The client whose registered scopes the service gets. */
  readonly clientId: string
}

const MAX_SERVICES = 5

const MEMBERS = ['id', 'name', 'url', 'client-id']

/** `sallyport.yaml` has a list; an environment variable has the same list as JSON. */
export const cdsServices: SettingType<readonly CdsService[]> = {
  expected: `a list of at most ${MAX_SERVICES} CDS services with id, url, client-id and a name (docs/how-to/cds-hooks.md)`,
  structured: true,
  parse: text => {
    const list = parseJson(text)
    if (!Array.isArray(list) || list.length > MAX_SERVICES) return undefined
    const services = list.flatMap(entry => readService(entry) ?? [])
    return services.length === list.length ? services : undefined
  },
  show: showIds,
}

const serviceId: SettingType<string> = {
  expected: 'letters, digits, dots, hyphens and underscores',
  parse: text => (/^[\w-][\w.-]{0,99}$/.test(text) ? text : undefined),
}

function readService(entry: unknown): CdsService | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined
  const texts = new Map(Object.entries(entry))
  if ([...texts].some(([name, text]) => !MEMBERS.includes(name) || typeof text !== 'string')) return undefined
  const read = (name: string, { parse }: SettingType<string>) => parse(texts.get(name) ?? '')
  const id = read('id', serviceId)
  const url = read('url', types.baseAddress)
  const clientId = read('client-id', types.clientId)
  const name = texts.has('name') ? read('name', types.headerText) : id
  if (id === undefined || name === undefined || url === undefined || clientId === undefined) return undefined
  return { id, name, url, clientId }
}
