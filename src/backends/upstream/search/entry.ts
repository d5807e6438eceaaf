import { formatExact, type Resource } from '../../../fhir/index.ts'
import type { SearchEntry } from '../../../fhir-api/index.ts'
import type { CheckedResource } from './fetch-page.ts'

/** A resource that the upstream returned and that was checked, as the API sees it. */
export function toEntry(released: CheckedResource): SearchEntry {
  return new UpstreamEntry(released)
}

class UpstreamEntry implements SearchEntry {
  readonly #released: CheckedResource
  #text: string | undefined

  constructor(released: CheckedResource) {
    this.#released = released
  }

  get type(): string {
    return this.#released.resource.resourceType
  }

  get id(): string {
    return this.#released.resource.id ?? ''
  }

  get text(): string {
    this.#text ??= formatExact(this.#released.exact)
    return this.#text
  }

  get order(): number {
    return Date.parse(this.#released.resource.meta?.lastUpdated ?? '')
  }

  parse(): Resource {
    return this.#released.resource
  }
}
