import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'

let published: ReadonlyMap<string, object> | undefined

/** What HL7 publishes with R4, by file name, in the order of the names (see scripts/pack-r4.ts). */
function readAll(): ReadonlyMap<string, object> {
  published ??= unpack(readFileSync(new URL('./r4.ndjson.br', import.meta.url)))
  return published
}

function unpack(packed: Buffer): ReadonlyMap<string, object> {
  const lines = brotliDecompressSync(packed).toString().split('\n')
  return new Map(lines.map(line => JSON.parse(line)))
}

/** Every resource of a type, definitions and examples alike. */
export function readPublished<T extends object>(resourceType: string): T[] {
  return [...readAll()]
    .filter(([name]) => name.startsWith(`${resourceType}-`))
    .map(([, resource]) => resource as T)
}

/** The names of the files that hold a resource: `Patient-example.json`. */
export function listPublishedFiles(): string[] {
  return [...readAll().keys()]
}

export function readPublishedFile(name: string): unknown {
  return readAll().get(name)
}
