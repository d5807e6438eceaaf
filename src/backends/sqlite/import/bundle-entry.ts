import { entryId } from './identity.ts'
import { isObject } from './parse-json.ts'

/** What an entry of a Bundle asks for: a resource to keep, nothing, or something that an import does not do. */
export type BundleEntry =
  | {
      readonly kind: 'resource'
      readonly resource: Readonly<Record<string, unknown>>
      readonly fullUrl: string | undefined
    }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'fault'; readonly fault: string }

/** Bundles whose entries are not the present state of anything. */
const notImported: Readonly<Record<string, string>> = {
  history: 'Bundle: A history is not imported, only the present state',
  'batch-response': 'Bundle: A response is not imported',
  'transaction-response': 'Bundle: A response is not imported',
}

/** Why nothing of a Bundle is imported; undefined when its entries are. */
export function bundleFault(type: unknown): string | undefined {
  return typeof type === 'string' ? notImported[type] : undefined
}

export function bundleEntry(value: unknown): BundleEntry {
  if (!isObject(value)) return { kind: 'fault', fault: 'Bundle.entry: Expected an object' }
  const { resource, fullUrl, request, search } = value
  if (isObject(search) && search.mode === 'outcome') return { kind: 'nothing' }
  const method = isObject(request) ? request.method : undefined
  if (method !== undefined && method !== 'POST' && method !== 'PUT')
    return { kind: 'fault', fault: 'Bundle.entry: Only POST and PUT are imported' }
  if (!isObject(resource)) return { kind: 'fault', fault: 'Bundle.entry: Expected a resource' }
  const id = entryId(resource, fullUrl, isObject(request) && method === 'PUT' ? request.url : undefined)
  return {
    kind: 'resource',
    resource: resource.id === undefined ? { ...resource, id } : resource,
    fullUrl: typeof fullUrl === 'string' ? fullUrl : undefined,
  }
}
