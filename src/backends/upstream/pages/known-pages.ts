import { findJsonExcess, isResource, type Resource } from '../../../fhir/index.ts'
import type { FhirRequest } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { type CheckedPage, type CheckedResource, findNewest, type KeptPage } from '../paging.ts'

/** The pages that were checked before with the same access, by the same check and at the same URL. */
export interface PageMemory {
  recall(text: string): KnownPage | undefined
  keep(text: string, bundle: Resource, page: CheckedPage): void
}

export function openMemory(
  { checkedPages }: Pick<GatewayContext, 'checkedPages'>,
  { access }: Pick<FhirRequest, 'access'>,
  { path }: Pick<UpstreamRequest, 'path'>,
  key: string | undefined,
): PageMemory | undefined {
  if (key === undefined) return undefined
  const place = `${key} ${path}`
  return {
    recall: text => recallPage(text, entries => checkedPages.find(access, place, entries)),
    keep: (text, bundle, page) =>
      keepPage(text, bundle, page, (entries, kept) => checkedPages.add(access, place, entries, kept)),
  }
}

export interface KnownPage {
  readonly kind: 'known'
  readonly bundle: Resource
  readonly page: KeptPage
}

const ENTRY = '"entry"'

/**
 * Finds a page whose entries are known by their text. The members before them may differ: servers give each page of results
 * a new id, time and links. The text before the entries is parsed with an empty list of entries after it. If that is JSON,
 * the whole text is an object with these members, followed by the members of the known text.
 */
export function recallPage(
  text: string,
  find: (entries: string) => KeptPage | undefined,
): KnownPage | undefined {
  const at = text.indexOf(ENTRY)
  const page = at < 0 ? undefined : find(text.slice(at))
  const head = page && parseHead(text.slice(0, at))
  return head && { kind: 'known', bundle: { ...head, ...page.rest }, page }
}

function parseHead(text: string): Resource | undefined {
  try {
    const head: unknown = findJsonExcess(text) ? undefined : JSON.parse(`${text}${ENTRY}:[]}`)
    return isResource(head) && head.resourceType === 'Bundle' ? head : undefined
  } catch {
    return undefined
  }
}

/** Keeps the text of the resources: parsed resources would take several times the memory. */
export function keepPage(
  text: string,
  bundle: Resource,
  page: CheckedPage,
  keep: (entries: string, page: KeptPage) => void,
): void {
  const at = text.indexOf(ENTRY)
  const head = at < 0 ? undefined : parseHead(text.slice(0, at))
  if (!head) return
  const rest = Object.fromEntries(Object.entries(bundle).filter(([name]) => !(name in head)))
  const matches = page.matches.map(it => new KeptResource(it))
  keep(text.slice(at), {
    ...page,
    matches,
    rest,
    findNewest: () => findNewest(matches.map(it => it.resource)),
  })
}

/** A resource of a cached page. Only its text is kept, and parsed where the content is needed. */
class KeptResource implements CheckedResource {
  readonly type: string
  readonly id: string
  readonly text: string

  constructor({ type, id, text }: CheckedResource) {
    this.type = type
    this.id = id
    this.text = text
  }

  get resource(): Resource {
    return JSON.parse(this.text)
  }

  get order(): number {
    return Date.parse(this.resource.meta?.lastUpdated ?? '')
  }

  parse(): Resource {
    return this.resource
  }
}
