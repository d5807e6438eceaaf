import type { Params } from '../../../fhir/index.ts'
import type { Sealer } from '../../../store/index.ts'
import type { Spot } from './fetch-page.ts'

/** Where a search or a history goes on at the upstream, and whose it is. */
export interface Place {
  /** What the page is of: an interaction's address. A page of one is not a page of another. */
  readonly of: string
  /** As it was first asked; judged anew with every page. */
  readonly params: Params
  readonly spot: Spot
  /** The grant that got the link (`holderOf`). */
  readonly holder: string
}

/**
 * Paging links. The upstream's link, which may be anything, travels inside, sealed: nobody reads or writes one, no
 * gateway has to remember it, and only the grant that got it can use it.
 */
export interface Pages {
  seal(place: Place): string
  /** Undefined for what was not sealed here. */
  open(text: string): Place | undefined
}

/** The name of the parameter that carries a page; another one than an upstream of ours has. */
export const PAGE = '_gateway-page'

const PURPOSE = 'paging link of the gateway'

/** Gateways that share a secret share their links. */
export function openPages(sealer: Sealer): Pages {
  return {
    seal: place => sealer.seal(JSON.stringify(place), PURPOSE),
    open(text) {
      const opened = sealer.tryOpen(text, PURPOSE)
      return opened === undefined ? undefined : JSON.parse(opened)
    },
  }
}
