import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const folder = dirname(createRequire(import.meta.url).resolve('hl7.fhir.r4.examples/package.json'))

/** Every resource of a type that HL7 publishes with R4, definitions and examples alike, in order of file name. */
export function readPublished<T extends object>(resourceType: string): T[] {
  return publishedFiles()
    .filter(name => name.startsWith(`${resourceType}-`))
    .map(name => JSON.parse(readFileSync(join(folder, name), 'utf8')))
}

/** The files of the package that hold a resource: `Patient-example.json`. */
export function publishedFiles(): string[] {
  return readdirSync(folder)
    .filter(name => /^[A-Z][A-Za-z]+-.+\.json$/.test(name))
    .toSorted()
}

export function readPublishedFile(name: string): unknown {
  return JSON.parse(readFileSync(join(folder, name), 'utf8'))
}
