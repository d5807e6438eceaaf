import { isRecord } from '../../fhir/index.ts'
import { LIMITS } from '../limits.ts'

/** A card of a CDS service (CDS Hooks 2.0, card attributes), without suggestions. */
export interface Card {
  readonly summary: string
  /** Markdown. */
  readonly detail: string | undefined
  readonly indicator: Indicator
  readonly source: { readonly label: string; readonly url: string | undefined }
  readonly links: readonly CardLink[]
}

export interface CardLink {
  readonly label: string
  readonly url: string
  readonly type: 'absolute' | 'smart'
  readonly appContext: string | undefined
}

const INDICATORS = ['critical', 'warning', 'info'] as const

export type Indicator = (typeof INDICATORS)[number]

/** Reads the cards of a response, the most urgent first. Undefined if it is not a response of a CDS service. */
export function readCards(response: unknown): readonly Card[] | undefined {
  if (!isRecord(response) || !Array.isArray(response.cards)) return undefined
  return response.cards
    .slice(0, LIMITS.cdsCards)
    .flatMap(card => readCard(card) ?? [])
    .toSorted((a, b) => INDICATORS.indexOf(a.indicator) - INDICATORS.indexOf(b.indicator))
}

/** A card without its required members, or with a value that is too long, is omitted: an incomplete card could mislead. */
function readCard(card: unknown): Card | undefined {
  if (!isRecord(card) || !isRecord(card.source)) return undefined
  const summary = readText(card.summary, LIMITS.cdsSummaryCharacters)
  const label = readText(card.source.label, LIMITS.cdsSummaryCharacters)
  const indicator = INDICATORS.find(one => one === card.indicator)
  const detail = card.detail === undefined ? undefined : readText(card.detail, LIMITS.cdsDetailCharacters)
  if (summary === undefined || label === undefined || indicator === undefined) return undefined
  if (card.detail !== undefined && detail === undefined) return undefined
  return {
    ...{ summary, detail, indicator },
    source: { label, url: readWebUrl(card.source.url) },
    links: readLinks(card.links),
  }
}

function readLinks(links: unknown): readonly CardLink[] {
  const all: readonly unknown[] = Array.isArray(links) ? links : []
  return all.slice(0, LIMITS.cdsLinks).flatMap(link => readLink(link) ?? [])
}

function readLink(link: unknown): CardLink | undefined {
  if (!isRecord(link)) return undefined
  const { type, appContext } = link
  const [label, url] = [readText(link.label, LIMITS.cdsSummaryCharacters), readWebUrl(link.url)]
  if (label === undefined || url === undefined || (type !== 'absolute' && type !== 'smart')) return undefined
  if (type === 'absolute' || appContext === undefined) return { label, url, type, appContext: undefined }
  const context = readText(appContext, LIMITS.appContextCharacters)
  return context === undefined ? undefined : { label, url, type, appContext: context }
}

function readText(value: unknown, longest: number): string | undefined {
  return typeof value === 'string' && value.trim() !== '' && value.length <= longest && !value.includes('\0')
    ? value
    : undefined
}

/** An absolute URL that a browser opens as a page. */
export function readWebUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > LIMITS.urlCharacters) return undefined
  const url = URL.parse(value)
  return url && /^https?:$/.test(url.protocol) && url.username === '' ? value : undefined
}
