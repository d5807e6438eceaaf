import type { FastifyInstance, InjectOptions } from 'fastify'
import { resourceTypes } from '../../src/fhir/index.ts'
import type { Access, Authenticator, Constraint } from '../../src/smart/index.ts'

export const TAG_SYSTEM = 'urn:sallyport:conformance'

/** Keeps the resources of a test apart from others on the same server: ids and identifiers get a prefix on the wire. */
export interface Namespace {
  /** The requests of a test, with its short ids, go to the app with the prefix; responses come back without. */
  wrap(app: FastifyInstance): FastifyInstance
  /** The guard of a test names patients and other resources by their short ids. */
  guard(guard: Authenticator): Authenticator
}

// These are parts of canonical URLs, which stay as they are.
const CANONICAL = ['CodeSystem', 'StructureDefinition']
const TYPES: ReadonlySet<string> = new Set(resourceTypes.filter(it => !CANONICAL.includes(it)))
const LOCAL = /\b([A-Z][A-Za-z]+)\/([A-Za-z0-9][A-Za-z0-9.-]{0,63})/g
// A search by a bare id.
const BARE =
  /(?<=[?&](?:_id|patient|subject|performer|general-practitioner)(?::\w+)?=)[a-z][\w,-]*(?![\w,:-])/g
const SYSTEM = /\burn:(mrn|race|g|npi)\b/g
// An identifier without a system, and the URL of a ValueSet, of which a server may accept only one.
const VALUE = /(?<=\bidentifier=)(?=new\b)|(?<=\bhttp:\/\/x\.test\/vs\/)(?=a\b)/g
const VERSION = /[/"]([A-Z]\w+\/[\w.-]+)\/_history\//g
// A search of a type, of a compartment or of all types; page links stay as they are.
const SEARCH = /^\/fhir\/?(?:(?:Patient\/[^/?]+\/)?(?:[A-Z]\w+|\*))?(?:\?(?!_gateway-page=)|$)/
const HEADERS = ['if-none-exist', 'x-security-context']

/**
 * `made` collects the resources of the test (`Type/id` on the server), which are tagged as far as they are JSON. Searches are
 * limited to the tag, so that they find nothing else on the server.
 */
export function createNamespace(prefix: string, run: string, made: Set<string>): Namespace {
  const assigned = new Set<string>()
  const tag = prefix.slice(0, -1)
  const toId = (id: string) => (assigned.has(id) || TYPES.has(id) ? id : `${prefix}${id}`)
  const toWire = (text: string) =>
    text
      .replace(LOCAL, (local, type, id) => (TYPES.has(type) ? `${type}/${toId(id)}` : local))
      .replace(BARE, ids => ids.split(',').map(toId).join(','))
      .replace(SYSTEM, `urn:$1:${prefix}`)
      .replace(VALUE, prefix)
  const toBody = (text: string) =>
    toWire(text)
      .replace(/"id":"([\w.-]+)"/g, (_, id) => `"id":"${toId(id)}"`)
      .replace(
        /"resourceType":"(?!Bundle|Parameters)(\w+)"(?!,"meta")/g,
        `"resourceType":"$1","meta":${meta(run, tag)}`,
      )

  const toUrl = (method: string | undefined, url: string) =>
    method === 'GET' && SEARCH.test(url)
      ? `${toWire(url)}${url.includes('?') ? '&' : '?'}_tag=${TAG_SYSTEM}|${tag}`
      : toWire(url)

  function toRequest(options: InjectOptions): InjectOptions {
    const { method, url, payload, headers = {} } = options
    const named = Object.entries(headers).map(([name, value]) => [
      name,
      HEADERS.includes(name) ? toWire(String(value)) : value,
    ])
    return {
      ...options,
      url: toUrl(method, String(url)),
      headers: Object.fromEntries(named),
      ...(payload !== undefined && { payload: typeof payload === 'string' ? toBody(payload) : payload }),
    }
  }

  const fromWire = (text: string) => text.replaceAll(`:${prefix}`, '').replaceAll(prefix, '')

  function note({ method, url }: InjectOptions, location: string, body: string): void {
    const [, put] = method === 'PUT' ? (/^\/fhir\/(\w+\/[\w.-]+)$/.exec(String(url)) ?? []) : []
    if (put !== undefined) made.add(put)
    for (const [, local = ''] of `${location} ${body}`.matchAll(VERSION)) made.add(local)
    const ids = [...body.matchAll(/"id":\s*"([^"]+)"/g)].map(([, id = '']) => id)
    for (const id of [...ids, ...[...made].map(it => it.split('/')[1] ?? '')])
      if (!id.startsWith(prefix)) assigned.add(id)
  }

  return {
    wrap(app) {
      const inject = async (options: InjectOptions) => {
        const request = toRequest(options)
        const reply = await app.inject(request)
        note(request, String(reply.headers.location ?? ''), reply.body)
        const body = fromWire(reply.body)
        const headers = Object.fromEntries(
          Object.entries(reply.headers).map(([name, value]) => [
            name,
            typeof value === 'string' ? fromWire(value) : value,
          ]),
        )
        const { statusCode, rawPayload } = reply
        return { statusCode, rawPayload, headers, body, json: () => JSON.parse(body) }
      }
      return new Proxy(app, {
        get: (target, name) => (name === 'inject' ? inject : Reflect.get(target, name)),
      })
    },
    guard: guard => ({
      async authenticate(authorization) {
        const found = await guard.authenticate(authorization)
        if (!found.allowed) return found
        return {
          ...found,
          decide: (...request) => {
            const decision = found.decide(...request)
            return decision.allowed ? { ...decision, access: toAccess(decision.access) } : decision
          },
        }
      },
    }),
  }

  function toAccess(access: Access): Access {
    return {
      filterFor: (type, permission) => {
        const filter = access.filterFor(type, permission)
        return filter === 'everything' ? filter : filter.map(toConstraint)
      },
    }
  }

  function toConstraint({ patient, id, panel, ...rest }: Constraint): Constraint {
    return {
      ...rest,
      ...(patient !== undefined && { patient: `${prefix}${patient}` }),
      ...(id !== undefined && { id: `${prefix}${id}` }),
      ...(panel && { panel: { ...panel, organizations: panel.organizations.map(it => `${prefix}${it}`) } }),
    }
  }
}

function meta(...codes: readonly string[]): string {
  return JSON.stringify({ tag: codes.map(code => ({ system: TAG_SYSTEM, code })) })
}
