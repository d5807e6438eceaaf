import type { Params } from '../../fhir/index.ts'

/** Where a search or a history goes on. Only the backend that made it knows what it means. */
export type Cursor = object

/** A page, and who may open it. */
interface Page {
  /** The path of the interaction: a page of one is not a page of another. */
  readonly path: string
  /** As first requested; decided again with every page. */
  readonly params: Params
  readonly cursor: Cursor
  /** The fingerprint of the grant that got the link. */
  readonly holder: string
}

/** Seals paging links, so that they reveal nothing of the search and nobody can make one up. */
export interface Pages {
  /** The name of the parameter that carries a page. */
  readonly parameter: string
  seal(page: Page): string
  /** Undefined for what was not sealed here. */
  open(text: string): Page | undefined
}

/** What seals texts: the sealer of the store. */
interface TextSealer {
  seal(text: string, purpose: string): string
  tryOpen(text: string, purpose: string): string | undefined
}

export function createPages(sealer: TextSealer, parameter: string, purpose: string): Pages {
  return {
    parameter,
    seal: page => sealer.seal(JSON.stringify(page), purpose),
    open(text) {
      const opened = sealer.tryOpen(text, purpose)
      return opened === undefined ? undefined : JSON.parse(opened)
    },
  }
}
