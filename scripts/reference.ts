/** `npm run reference` writes the generated pages; `npm run check:docs` checks that they are current. */
import { writeFileSync } from 'node:fs'
import { generatePages } from './checks/generated.ts'

for (const [page, text] of await generatePages()) writeFileSync(new URL(`../${page}`, import.meta.url), text)
