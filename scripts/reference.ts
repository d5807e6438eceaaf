/** `npm run reference` writes the generated pages; `npm run check:docs` checks that they are current. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { generatePages } from './checks/generated.ts'
import { listFiles, ROOT, readSources } from './checks/sources.ts'

const sources = readSources(listFiles().filter(file => /\.(?:md|ts)$/.test(file)))
for (const [page, text] of await generatePages(sources)) writeFileSync(resolve(ROOT, page), text)
