import { isInstalled } from './own-files.ts'

/** How to run a command: what a person types before its name. */
export const HOW = isInstalled ? 'sallyport' : 'npm run -s sallyport --'
