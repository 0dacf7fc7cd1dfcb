autocmd BufRead,BufNewFile *.zpl setfiletype zpl
